// Folders for data that is nobody else's business: pages of all tenants lie there.
#pragma once

#include <filesystem>

namespace facetheory {

inline constexpr unsigned kPrivateFolderMode = 0700;
inline constexpr unsigned kPrivateFileMode = 0600;

// Makes the folder and those above it, for this process's user alone, each synced into its parent. One that is there is
// left as it is. 0, or the error.
int make_private_folders(const std::filesystem::path& folder);

// What was named in it stays so if the machine goes down. 0, or the error.
int sync_folder(const std::filesystem::path& folder);

}  // namespace facetheory
