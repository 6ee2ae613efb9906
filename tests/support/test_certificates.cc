#include "tests/support/test_certificates.h"

#include <atomic>
#include <memory>
#include <stdexcept>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace facetheory::test {
namespace {

template <auto release>
struct Releaser {
  template <typename T>
  void operator()(T* pointer) const {
    release(pointer);
  }
};
using Certificate = std::unique_ptr<X509, Releaser<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Releaser<EVP_PKEY_free>>;
using Bio = std::unique_ptr<BIO, Releaser<BIO_free_all>>;

void require_made(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("making a test certificate: ") + what);
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  require_made(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, "extension");
  X509_EXTENSION_free(extension);
}

// Signed by `issuer`, or by itself when there is none.
ServerIdentity make(const std::string& subject, const ServerIdentity* issuer, long from, long until) {
  static std::atomic<long> serial = 1;
  const PrivateKey key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  require_made(key && certificate, "key");
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), until);
  X509_set_pubkey(certificate.get(), key.get());
  const std::string common_name = issuer == nullptr ? subject : "a test server";
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  if (issuer == nullptr) {
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
    add_extension(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
    add_extension(certificate.get(), certificate.get(), NID_key_usage, "critical,keyCertSign");
    require_made(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0, "signature");
  } else {
    const Bio issuer_bio(
        BIO_new_mem_buf(issuer->certificate_pem.data(), static_cast<int>(issuer->certificate_pem.size())));
    const Bio key_bio(BIO_new_mem_buf(issuer->key_pem.data(), static_cast<int>(issuer->key_pem.size())));
    const Certificate root(PEM_read_bio_X509(issuer_bio.get(), nullptr, nullptr, nullptr));
    const PrivateKey root_key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
    require_made(root && root_key, "issuer");
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(root.get()));
    const bool address = subject.find_first_not_of("0123456789.") == std::string::npos;
    add_extension(certificate.get(), root.get(), NID_subject_alt_name, (address ? "IP:" : "DNS:") + subject);
    require_made(X509_sign(certificate.get(), root_key.get(), EVP_sha256()) > 0, "signature");
  }

  const Bio certificate_out(BIO_new(BIO_s_mem()));
  const Bio key_out(BIO_new(BIO_s_mem()));
  require_made(PEM_write_bio_X509(certificate_out.get(), certificate.get()) == 1, "PEM");
  require_made(PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
               "PEM");
  return {text_of(certificate_out.get()), text_of(key_out.get())};
}

}  // namespace

TestAuthority::TestAuthority() : root_(make("a test root", nullptr, -7200, 7200)) {}

ServerIdentity TestAuthority::issue(std::string_view host, long valid_from, long valid_until) const {
  return make(std::string(host), &root_, valid_from, valid_until);
}

}  // namespace facetheory::test
