// How much memory there is for this process and all that runs beside it: the machine's, or less where a control group
// sets a limit, as containers and units of systemd have one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace facetheory {

// The memory of the machine in bytes; empty: the system does not say. `root` is where /proc and /sys are; tests have
// some of their own.
std::optional<std::uint64_t> machine_memory(const std::filesystem::path& root = "/");

}  // namespace facetheory
