#include "facetheory/site/tracking_names.h"

namespace facetheory {

const NamePatterns& tracking_parameters() {
  static const NamePatterns names(
      {"utm_*",      "gclid",   "gclsrc",     "gbraid",    "wbraid",    "gad_*",         "dclid",
       "fbclid",     "msclkid", "twclid",     "ttclid",    "li_fat_id", "igshid",        "yclid",
       "ysclid",     "mc_cid",  "mc_eid",     "_hsenc",    "_hsmi",     "hsCtaTracking", "mkt_tok",
       "_ga",        "_gl",     "epik",       "srsltid",   "vero_id",   "oly_anon_id",   "oly_enc_id",
       "rb_clickid", "s_cid",   "wickedid",   "ref_src",   "mtm_*",     "pk_campaign",   "pk_cid",
       "pk_content", "pk_kwd",  "pk_keyword", "pk_medium", "pk_source"});
  return names;
}

const NamePatterns& tracking_cookies() {
  static const NamePatterns names(
      {"_ga",     "_ga_*",   "_gid",       "_gat",  "_gat_*",      "_gcl_*",       "_dc_gtm_*",
       "__utm*",  "_fbp",    "_fbc",       "_hj*",  "_pk_*",       "_clck",        "_clsk",
       "_uetsid", "_uetvid", "_scid",      "_tt_*", "_ttp",        "_pin_unauth",  "__hstc",
       "__hssc",  "__hssrc", "hubspotutk", "ajs_*", "amplitude_*", "intercom-id-*"});
  return names;
}

}  // namespace facetheory
