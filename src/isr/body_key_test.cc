#include "facetheory/isr/body_key.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

constexpr WallTime kNow{std::chrono::milliseconds(1'700'000'000'123)};

TEST(BodyKey, IsFolderTimeUuidMarkAndExtension) {
  SeededRandom random(1);
  const Page page = *page_of("/news/42");
  const std::string key = body_key_for(page, "text/html; charset=utf-8", kNow, random);
  EXPECT_EQ(key.substr(0, 25), body_folder(page) + "/");
  EXPECT_EQ(key.substr(25, 14), "1700000000123-");
  EXPECT_EQ(key.substr(25 + 14 + 36), ".isr.html");
}

TEST(BodyKey, EndsAccordingToTheContentType) {
  SeededRandom random(1);
  const Page page = *page_of("/news/42");
  const auto ending = [&](std::string_view type) {
    const std::string key = body_key_for(page, type, kNow, random);
    return key.substr(key.rfind('.'));
  };
  EXPECT_EQ(ending("TEXT/HTML"), ".html");
  EXPECT_EQ(ending("application/json; charset=utf-8"), ".json");
  EXPECT_EQ(ending("text/plain"), ".txt");
  EXPECT_EQ(ending("image/png"), ".bin");
  EXPECT_EQ(ending(""), ".bin");
}

TEST(BodyKey, IsRecognisedAsOurs) {
  SeededRandom random(1);
  for (const char* type : {"text/html", "application/json", "image/png"})
    EXPECT_TRUE(is_our_body_key(body_key_for(*page_of("k", "t"), type, kNow, random)));
}

TEST(BodyKey, OfAnotherWriterIsNotTakenForOurs) {
  const std::string folder = "0123456789abcdef01234567";
  const std::string uuid = "0b9c5ad2-6b1f-4e0f-9d4f-0d6f6f7f3c55";
  ASSERT_TRUE(is_our_body_key(folder + "/1700000000123-" + uuid + ".isr.html"));
  for (const std::string& key : {folder + "/1700000000123-" + uuid + ".html",            // FaceTheory's
                                 folder + "/1700000000123-" + uuid + ".hydration.json",  // and its companion
                                 folder + "/1700000000123-" + uuid + ".isr.",            //
                                 folder + "/1700000000123-" + uuid + ".isr.html/x",      //
                                 folder + "/17000000x0123-" + uuid + ".isr.html",        //
                                 folder + "x/1700000000123-" + uuid + ".isr.html",       //
                                 folder.substr(1) + "/1700000000123-" + uuid + ".isr.html",  //
                                 folder + "/-" + uuid + ".isr.html",                         //
                                 folder + "/1700000000123-" + uuid.substr(1) + ".isr.html",  //
                                 "isr/" + folder + "/1700000000123-" + uuid + ".isr.html",   //
                                 folder, std::string(), std::string("index.isr.html")}) {
    EXPECT_FALSE(is_our_body_key(key)) << key;
  }
}

TEST(BodyKey, IsRecognisedInEveryFormThatARowCarries) {
  SeededRandom random(1);
  const Page page = *page_of("/news/42");
  const std::string key = body_key_for(page, "text/html", kNow, random);
  EXPECT_TRUE(names_our_body(key, page));
  EXPECT_TRUE(names_our_body("isr/" + key, page));
  EXPECT_TRUE(names_our_body("s3://bucket/isr/" + key, page));
  EXPECT_FALSE(names_our_body(key, *page_of("/news/43")));
  EXPECT_FALSE(names_our_body("isr/theirs.html", page));
  EXPECT_FALSE(names_our_body("", page));
}

TEST(BodyKey, NamesOneBodyInWhateverFormsTwoRowsHaveIt) {
  SeededRandom random(1);
  const std::string key = body_key_for(*page_of("/news/42"), "text/html", kNow, random);
  const std::string other = body_key_for(*page_of("/news/42"), "text/html", kNow, random);
  EXPECT_TRUE(name_same_body(key, "isr/" + key));
  EXPECT_TRUE(name_same_body("s3://bucket/isr/" + key, "isr/" + key));
  EXPECT_FALSE(name_same_body(key, other));
  // Of another writer's nothing is known but its text.
  EXPECT_TRUE(name_same_body("isr/theirs.html", "isr/theirs.html"));
  EXPECT_FALSE(name_same_body("isr/theirs.html", "theirs.html"));
  EXPECT_FALSE(name_same_body("/", ""));
}

}  // namespace
}  // namespace facetheory
