"""The mistakes that tools/mutate makes: one in a line for each thing that must never go wrong."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mistake:
    name: str
    file: str  # in src
    right: str  # what stands there, once or more
    wrong: str  # what is put in its place, wherever it stands
    tests: tuple = ()  # as TESTS of tools/mutate has them; empty: those of the layer
    layers: tuple = ()  # others in which a mistaken header is compiled anew


def cli(*cases):
    """Cases of tests/cli/cli_test.py."""
    return tuple(("tests/cli/cli_test.py", case) for case in cases)


def protocol(names):
    return (("tests/protocol/protocol_test", f"--gtest_filter={names}"),)


MISTAKES = [
    Mistake(
        "publishing without looking at the token",
        "isr/publish.cc",
        'attr("lease_token") == lease_.token && attr("lease_expires_at") > now',
        'attr("lease_expires_at") > now',
    ),
    Mistake(
        "publishing without looking at the expiry",
        "isr/publish.cc",
        'attr("lease_token") == lease_.token && attr("lease_expires_at") > now',
        'attr("lease_token") == lease_.token',
    ),
    Mistake(
        "publishing in the second in which the lease expires",
        "isr/publish.cc",
        'attr("lease_expires_at") > now',
        'attr("lease_expires_at") >= now',
    ),
    Mistake(
        "publishing first and giving the lease back afterwards",
        "isr/publish.cc",
        "auto transacted = co_await transact_repeatedly(isr_, items());",
        "auto all = items(); all.erase(all.begin());"
        "auto transacted = co_await transact_repeatedly(isr_, std::move(all));"
        "[[maybe_unused]] auto released = co_await release(isr_, lease_);",
    ),
    Mistake(
        "publishing a body that could not be stored", "isr/publish.cc", "if (!written) co_return written.error();", ""
    ),
    Mistake(
        "publishing a body whose storing was cut short",
        "isr/publish.cc",
        'Result<void> written = Error{ErrorCode::unavailable, "the lease was lost while the body was stored"};',
        "Result<void> written;",
    ),
    Mistake(
        "dating a page by when it was published",
        "isr/publish.cc",
        "std::max(lease.acquired_at, replaced)",
        "std::max(isr.now(), replaced)",
    ),
    Mistake(
        "dating a page by a clock that is behind",
        "isr/publish.cc",
        "std::max(lease.acquired_at, replaced)",
        "lease.acquired_at",
    ),
    Mistake(
        "letting an older generation replace a newer one",
        "isr/publish.cc",
        "generations.next < generations.replaced ||",
        "",
    ),
    Mistake(
        "inheriting a time that has not come by any clock",
        "isr/publish.cc",
        "const bool believable = before && before->newest_generation() <= latest;",
        "const bool believable = before.has_value();",
    ),
    Mistake(
        "taking any time that is given",
        "isr/publish.cc",
        "(*options.generated_at < 1 || *options.generated_at > latest)",
        "(*options.generated_at < 1)",
    ),
    Mistake(
        "not purging a page whose time has not come",
        "isr/freshness.cc",
        "return mark_time >= began || began > latest;",
        "return mark_time >= began;",
    ),
    Mistake(
        "forgetting that a page from the future was purged",
        "isr/verdict.cc",
        "if (!claims_the_future(judged, isr.now(), isr.settings.clock_skew)) co_return false;",
        "if (judged.s3_key != page.pk) co_return false;",
    ),
    Mistake(
        "closing a page and believing the time that it claims",
        "isr/verdict.cc",
        "ahead ? now : meta.newest_generation()",
        "ahead ? meta.newest_generation() : meta.newest_generation()",
    ),
    Mistake(
        "overlooking where the marks of the tenant default stood",
        "isr/page.h",
        "return tenant == kDefaultTenant ? 2 : 1;",
        "return tenant.size() > kMaxTenantBytes ? 2 : 1;",
    ),
    Mistake(
        "counting a page without tags as one that does not have the tag",
        "isr/close_pages.cc",
        "if (!by_route) return Concern::untold;",
        "if (!by_route) return Concern::none;",
    ),
    Mistake(
        "rendering what a guard will not let be published",
        "isr/regenerate.cc",
        "if (auto refused = certain_refusal(isr_, lease, options_.publish, seen_.meta)) {",
        "if (auto refused = std::optional<PublishRefused>()) {",
    ),
    Mistake(
        "taking a pinned page that is to be rendered for a fresh one",
        "isr/regenerate.cc",
        "if (options_.even_if_fresh && seen_.meta->pinned) {",
        "if (false) {",
    ),
    Mistake(
        "hashing a request without its policy",
        "isr/request_hash.cc",
        'own.emplace("history", std::to_string(policy.history));',
        "",
    ),
    Mistake(
        "claiming a request for longer than a lease",
        "isr/regenerate.cc",
        "request_hash(inputs), options_.lease,",
        "request_hash(inputs), options_.lease * 9,",
    ),
    Mistake(
        "not keeping a request while its page is waited for",
        "isr/regenerate.cc",
        "if (claim_ && !co_await keep_claim()) continue;",
        "",
    ),
    Mistake(
        "counting versions from one after a foreign writer",
        "isr/publish.cc",
        "newest = std::max(newest, newest_version(versions_));",
        "",
    ),
    Mistake(
        "taking a lease in the second before it expires",
        "isr/lease.cc",
        'attr("lease_expires_at") <= now}',
        'attr("lease_expires_at") <= now + 1}',
    ),
    Mistake(
        "leaving a lease alone in the second in which it expires",
        "isr/lease.cc",
        'attr("lease_expires_at") <= now}',
        'attr("lease_expires_at") < now}',
    ),
    Mistake(
        "acquiring with one token for all attempts",
        "isr/lease.cc",
        "Lease lease{page, uuid_v4(isr.random), now,",
        "Lease lease{page, tokens.empty() ? uuid_v4(isr.random) : tokens.front(), now,",
    ),
    Mistake(
        "releasing without a token",
        "isr/lease.cc",
        'Delete{lock_key(lease.page.pk), attr("lease_token") == lease.token}',
        "Delete{lock_key(lease.page.pk)}",
    ),
    Mistake(
        "refreshing without a token",
        "isr/lease.cc",
        'attr("lease_token") == lease.token && attr("lease_expires_at") > now &&',
        'attr("lease_expires_at") > now &&',
    ),
    Mistake(
        "refreshing what has expired",
        "isr/lease.cc",
        'attr("lease_token") == lease.token && attr("lease_expires_at") > now &&',
        'attr("lease_token") == lease.token &&',
    ),
    Mistake(
        "invalidating a page and leaving its lease",
        "isr/invalidate.cc",
        "    items.emplace_back(Delete{lock_key(page.pk)});\n"
        "    auto transacted = co_await transact_repeatedly(isr, std::move(items));\n"
        "    if (!transacted) co_return std::move(transacted).error();\n"
        "    if (std::holds_alternative<Committed>(transacted->outcome)) {\n"
        "      co_return Invalidated{meta->has_value(), lock->has_value()};\n    }\n"
        "    co_await pause(isr, attempt);\n  }\n"
        "  co_return restless(page);\n}\n\nTask<Result<Invalidated>> purge",
        "    auto transacted = co_await transact_repeatedly(isr, std::move(items));\n"
        "    if (!transacted) co_return std::move(transacted).error();\n"
        "    if (std::holds_alternative<Committed>(transacted->outcome)) {\n"
        "      co_return Invalidated{meta->has_value(), lock->has_value()};\n    }\n"
        "    co_await pause(isr, attempt);\n  }\n"
        "  co_return restless(page);\n}\n\nTask<Result<Invalidated>> purge",
    ),
    Mistake(
        "invalidating without a look at whether META appeared",
        "isr/invalidate.cc",
        'Check{meta_key(page.pk), attr("pk").not_exists()}',
        'Check{meta_key(page.pk), attr("pk").not_exists() || attr("pk").exists()}',
    ),
    Mistake(
        "marking a tag without an allowance for clocks",
        "isr/invalidate.cc",
        "isr.now() + isr.settings.clock_skew.count()",
        "isr.now()",
    ),
    Mistake(
        "marking a tag without counting",
        "isr/invalidate.cc",
        "Changes().increment(count, 1).set(time, at)",
        "Changes().set(time, at)",
    ),
    Mistake(
        "marking a tag that somebody ahead has marked, without counting",
        "isr/invalidate.cc",
        "Update{key, Changes().increment(count, 1), {}}",
        "Update{key, Changes().remove(\"nothing\"), {}}",
    ),
    Mistake(
        "letting clocks decide although the render saw the count",
        "isr/freshness.cc",
        "if (seen != meta.seen_marks.end()) {",
        "if (false) {",
    ),
    Mistake(
        "taking an older count for an invalidation",
        "isr/freshness.cc",
        "row.invalidations > before.invalidations",
        "row.invalidations != before.invalidations",
    ),
    Mistake(
        "overlooking a purge that the render did not see",
        "isr/freshness.cc",
        "row.purges > before.purges || row.purged_at > before.purged_at",
        "row.purged_at > before.purged_at",
    ),
    Mistake(
        "rendering without a look at the marks under the lease",
        "isr/regenerate.cc",
        "seen = co_await view_before_render(isr_, page_, options_.tags, std::move(likely));",
        "seen = co_await view(isr_, page_, Consistency::strong);",
    ),
    Mistake(
        "closing the window of a page that has changed",
        "isr/verdict.cc",
        "return same_row(meta) && attr(\"pinned\").not_exists();",
        "return attr(\"pinned\").not_exists();",
    ),
    Mistake(
        "closing the window of a page that is pinned",
        "isr/verdict.cc",
        "return same_row(meta) && attr(\"pinned\").not_exists();",
        "return same_row(meta);",
    ),
    Mistake(
        "claiming a request whatever its inputs",
        "isr/requests.cc",
        "if (!same) co_return RequestMismatch",
        "if (false) co_return RequestMismatch",
    ),
    Mistake(
        "taking a request over from a worker that lives",
        "isr/requests.cc",
        "if (*row.in_progress_expires_at > now) return",
        "if (*row.in_progress_expires_at > now + 60) return",
    ),
    Mistake(
        "completing a request that is not in progress",
        "isr/requests.cc",
        ' && attr("status") == name(RequestStatus::started)',
        "",
    ),
    Mistake(
        "handing no request back when the lease is held",
        "isr/regenerate.cc",
        "  co_await hand_back(why);\n  co_return otherwise;",
        "  if (why.empty()) co_await hand_back(why);\n  co_return otherwise;",
    ),
    Mistake(
        "not looking again after the lease was acquired",
        "isr/regenerate.cc",
        "auto fresh = co_await look(Look::under_the_lease);",
        "Result<Ended> fresh = Ended();",
    ),
    Mistake(
        "storing what is not to be stored",
        "isr/regenerate.cc",
        "if (!(*rendered)->store) co_return",
        "if (false) co_return",
    ),
    Mistake(
        "leaving a page that is not for everybody any more",
        "isr/regenerate.cc",
        "  if (seen_.meta) {\n    auto withdrawn",
        "  if (false) {\n    auto withdrawn",
    ),
    Mistake(
        "withdrawing a page without looking at the token",
        "isr/invalidate.cc",
        'attr("lease_token") == lease.token && attr("lease_expires_at") > isr.now()',
        'attr("lease_expires_at") > isr.now()',
    ),
    Mistake(
        "withdrawing a page without looking at the expiry",
        "isr/invalidate.cc",
        'attr("lease_token") == lease.token && attr("lease_expires_at") > isr.now()',
        'attr("lease_token") == lease.token',
    ),
    Mistake(
        "withdrawing a page that has changed",
        "isr/invalidate.cc",
        "Delete{meta_key(pk), still(**meta)}",
        "Delete{meta_key(pk)}",
    ),
    Mistake(
        "withdrawing a page of a newer generation",
        "isr/invalidate.cc",
        "const bool theirs = *meta && ((*meta)->pinned || newer);",
        "const bool theirs = *meta && (*meta)->pinned && newer;",
    ),
    Mistake(
        "publishing the answer of a render that failed",
        "isr/regenerate.cc",
        "if (*rendered && (*rendered)->failed) {",
        "if (false) {",
    ),
    Mistake(
        "taking any lease after failures for a back-off",
        "isr/rows.h",
        "return backoff_token && *backoff_token == lease_token;",
        "return failures > 0;",
    ),
    Mistake(
        "rolling back and leaving the lease", "isr/history.cc", "items.emplace_back(Delete{lock_key(page.pk)});", ""
    ),
    Mistake(
        "sweeping bodies in the first pass",
        "isr/sweep.cc",
        "const bool is_due = found_at && *found_at + options_.grace.count() <= now_;",
        "const bool is_due = true;",
    ),
    Mistake(
        "removing a released body that a row refers to",
        "isr/released_bodies.cc",
        "if (!references->contains((*first)->key)) keys.push_back((*first)->key);",
        "keys.push_back((*first)->key);",
    ),
    Mistake(
        "removing a released body under a reader",
        "isr/released_bodies.cc",
        "isr.released->take(isr.clock.monotonic() - grace, most)",
        "isr.released->take(isr.clock.monotonic(), most)",
    ),
    Mistake(
        "releasing a body that is used again",
        "isr/publish.cc",
        "if (before_ && !name_same_body(before_->s3_key, meta_.s3_key))",
        "if (before_)",
    ),
    Mistake(
        "not telling of trimmed versions' bodies",
        "isr/publish.cc",
        "const bool told = before_ && !before_->current_sk && name_same_body(before_->s3_key, row->s3_key);",
        "const bool told = true;",
    ),
    Mistake(
        "evicting a page whose lease is held",
        "isr/evict.cc",
        'Delete{lock_key(pk), attr("lease_expires_at").not_exists() || attr("lease_expires_at") <= now}',
        'Delete{lock_key(pk), attr("lease_expires_at").not_exists() || attr("lease_expires_at") <= now + 1000}',
    ),
    Mistake(
        "telling of a body that a version still names",
        "isr/released_bodies.cc",
        "if (!meta.current_sk) tell_released",
        "tell_released",
    ),
    Mistake(
        "withdrawing a page because there is no room",
        "cache/flights.cc",
        "if (!is_new || !rendered.store",
        "if (!rendered.store",
    ),
    Mistake(
        "sweeping beside another node",
        "isr/sweep.cc",
        "if (auto* held = std::get_if<LeaseHeld>(&*acquired)) co_return SweepOutcome(std::move(*held));",
        "if (std::holds_alternative<LeaseHeld>(*acquired)) acquired = AcquireOutcome(Lease{});",
    ),
    Mistake(
        "looking at the marks before a render eventually",
        "isr/pages.cc",
        "std::move(likely), Consistency::strong);",
        "std::move(likely), Consistency::eventual);",
    ),
    Mistake(
        "forgetting the marks of tags that only META names",
        "isr/marks.cc",
        "if (others.empty()) co_return rows;",
        "co_return rows;",
    ),
    Mistake(
        "closing pages that were rendered since the mark",
        "isr/close_pages.cc",
        "} else if (!purged && freshness.state == PageState::fresh) {",
        "} else if (false) {",
    ),
    Mistake(
        "closing pages of other tenants",
        "isr/close_pages.cc",
        "if (!meta || !is_same_tenant(page.tenant, options_.tenant)) return Concern::none;",
        "if (!meta) return Concern::none;",
    ),
    Mistake(
        "cancelling renders that began since the mark",
        "isr/close_pages.cc",
        "if (lock->acquired_at && *lock->acquired_at + allowance >= marked) co_return Result<void>();",
        "",
    ),
    Mistake(
        "leaving renders that began before the mark",
        "isr/close_pages.cc",
        "auto cancelled = co_await cancel_render(page);",
        "Result<void> cancelled;",
    ),
    Mistake("leaving the marks of a lease that is over", "isr/lease.cc", '.remove("seen_marks");', ";"),
    Mistake(
        "publishing in steps without the marks that LOCK has",
        "isr/publish.cc",
        "if (options_.seen_marks.empty()) options_.seen_marks = std::move((*lock)->seen_marks);",
        "",
    ),
    Mistake(
        "trusting a mark for longer than its own time",
        "cache/page_memory.cc",
        "if (mark != nullptr && now - mark->read_at < ttl)",
        "if (mark != nullptr)",
    ),
    Mistake(
        "trusting marks of a page that is distrusted",
        "cache/page_memory.cc",
        "if (pointer->meta_read_at == kLongAgo) return known;",
        "",
    ),
    Mistake(
        "reading marks anew for every page",
        "cache/page_memory.cc",
        "if (mark != nullptr && now - mark->read_at < ttl)",
        "if (false)",
    ),
    Mistake(
        "using a body again under a pointer of another form",
        "isr/publish.cc",
        "co_return isr_.bodies.reference(ours);",
        "co_return before_->s3_key;",
    ),
    Mistake(
        "rolling back to a pointer of another form",
        "isr/history.cc",
        "if (*here) meta.s3_key = isr.bodies.reference(ours);",
        "",
    ),
    Mistake(
        "publishing what an origin calls stale",
        "gateway/origin_render.cc",
        "if (!result.failed && is_called_stale(answer.headers)) call_stale(result);",
        "",
    ),
    Mistake(
        "taking the lease that the origin renders under",
        "site/read_routes.cc",
        '{"origin", Publisher::elsewhere}',
        '{"origin", Publisher::here}',
    ),
    Mistake(
        "leaving META open for an origin that knows no marks",
        "isr/rendered_elsewhere.cc",
        "if (!fresh && is_fresh_for_others(*before, isr)) co_await",
        "if (false) co_await",
        (("src/gateway/gateway_test",),),
    ),
    Mistake(
        "losing the tags of a page that a foreign writer replaced",
        "isr/marks.cc",
        "  meta->tags = tags;\n  make_distinct(meta->tags);",
        "",
        (("src/gateway/gateway_test",),),
    ),
    Mistake(
        "keeping the marks of the tenant default apart", "isr/page.cc", "if (tenant == kDefaultTenant) tenant = {};", ""
    ),
    Mistake(
        "keying cookies as they were sent",
        "site/facetheory_request.cc",
        "std::string value = cookie_value(cookie->second);",
        "std::string value(cookie->second);",
    ),
    Mistake(
        "keying a path in another spelling than FaceTheory's",
        "site/facetheory_request.cc",
        "if (as_sent.size() != normalised.size()) as_sent = normalised;",
        "as_sent = normalised;",
    ),
    Mistake(
        "using a body again that lies under another prefix",
        "isr/publish.cc",
        "co_await isr_.bodies.read(isr_.bodies.address(ours));",
        "co_await isr_.bodies.read(before_->s3_key);",
    ),
    Mistake(
        "closing a page and leaving the render of one whose window had ended",
        "isr/close_pages.cc",
        "(writes || count == &report_.already_closed)",
        "writes",
    ),
    Mistake(
        "closing a tenant and leaving first renders",
        "isr/close_pages.cc",
        "if (page && options_.tag.empty()",
        "if (page && !options_.tag.empty()",
    ),
    Mistake(
        "evicting pages of other writers",
        "isr/evict.cc",
        "if (!names_our_body(candidate.meta.s3_key, candidate.page))",
        "if (false)",
    ),
    Mistake(
        "sweeping bodies of another table",
        "isr/sweep.cc",
        "if (auto checked = check_may_delete(partners_); !checked) co_return checked.error();",
        "",
    ),
    Mistake(
        "sweeping beside a table that refers to nothing",
        "isr/sweep.cc",
        "referenced_.size() == 0 && !options_.vouched",
        "false",
    ),
    Mistake(
        "taking a table of another name for the partner",
        "isr/partners.cc",
        'if (is_renamed("dynamodb:", row.table, names.table)) return true;',
        "",
    ),
    Mistake(
        "taking the copy of a folder for the partner",
        "isr/partners.cc",
        'return is_renamed("lmdb:", row.table, names.table) && is_copied_folder(row, names);',
        "return false;",
    ),
    Mistake(
        "knowing bodies by one of their paths only",
        "isr/partners.cc",
        "one && other ? compare_places(one->string(), other->string())",
        "one && other && false ? Sameness::unknown",
    ),
    Mistake(
        "taking a copy for moved while its original is there",
        "isr/partners.cc",
        "return bodies == Sameness::unknown || !stands_as_noted(row, names);",
        "return false;",
    ),
    Mistake(
        "taking over the older bodies of a folder that others use, too",
        "isr/partners.cc",
        "if (holds_rows && folder != table && folder != bodies) return false;",
        "",
    ),
    Mistake(
        "evicting what others evict, too",
        "service/cleanup.cc",
        "if (lease == nullptr) co_return false;",
        "if (lease == nullptr) co_return true;",
    ),
    Mistake(
        "forgetting at a restart how many pages there are",
        "service/cleanup.cc",
        "if (!counted_at_) return true;",
        "if (!counted_at_) return false;",
    ),
    Mistake("evicting pages while released bodies wait", "service/cleanup.cc", "co_await make_room_of_released();", ""),
    Mistake("looking for what cannot go again and again", "service/cleanup.cc", "evict_again_at_ = now() + rest_;", ""),
    Mistake(
        "never looking again whose the bodies are",
        "service/partner_watch.cc",
        "if (steady_clock::now() < state_->due) return;",
        "if (state_->last.may_delete()) return;",
    ),
    Mistake(
        "overlooking the stores that the configuration names",
        "site/stores.cc",
        "if (auto said = said_by(file, kind, file_name)) return *std::move(said);",
        "",
    ),
    Mistake(
        "overlooking the variables of the specification",
        "site/stores.cc",
        "if (name.empty() || !environment.get(name)) continue;",
        "continue;",
    ),
    Mistake(
        "sending stored fields of a connection",
        "rules/replay.cc",
        "!contains_name(kForCaches, name) && !contains_name(kOfOneConnection, name)",
        "!contains_name(kForCaches, name)",
    ),
    # --- one invalidation, one render
    Mistake(
        "reading no mark of the tenant where marks are read by themselves",
        "isr/marks.cc",
        "tags.emplace_back();  // The tenant as a whole.\n  return marks_of_tags",
        "return marks_of_tags",
        protocol("*HistoryTest*/memory"),
    ),
    Mistake(
        "judging without the mark of the tenant",
        "isr/marks.cc",
        'add_mark_rows(page.tenant, "", rows);',
        'add_mark_rows(page.tenant, "of nobody", rows);',
    ),
    Mistake(
        "asking DynamoDB for one row after the other",
        "table/dynamodb_table.cc",
        "if (keys.size() == 1) {",
        "if (keys.size() > 1) { std::vector<std::optional<Item>> each; for (const Key& one : keys) { Key key = one;"
        " auto item = co_await do_get(std::move(key), consistency); if (!item) co_return std::move(item).error();"
        " each.push_back(*std::move(item)); } co_return each; }\n  if (keys.size() == 1) {",
        (("src/table/dynamodb_test", "--gtest_filter=DynamoDbFaults.SeveralItems*"),),
    ),
    Mistake(
        "forgetting where a pass over the pages has stopped",
        "isr/close_pages.cc",
        "report_.next = item.key.pk;",
        "",
        protocol("*ClosePagesTest*/memory"),
    ),
    Mistake(
        "beginning every pass over the pages anew",
        "isr/close_pages.cc",
        "if (options_.after) scan.after = meta_key(*options_.after);",
        "",
        protocol("*ClosePagesTest*/memory"),
    ),
    Mistake(
        "closing pages as fast as it goes",
        "isr/close_pages.cc",
        "if (!options_.rate) co_return;",
        "co_return;",
        protocol("*ClosePagesTest*/memory"),
    ),
    Mistake(
        "closing pages although it is a dry run",
        "isr/close_pages.cc",
        "if (writes && !options_.dry_run) {",
        "if (writes) {",
        protocol("*ClosePagesTest*/memory"),
    ),
    Mistake(
        "explaining a page without its marks",
        "gateway/explain.cc",
        "read.marks = *std::move(marks);",
        "",
        (("tests/cli/explain_test.py", "mark"),),
    ),
    Mistake(
        "explaining a stale page as a hit",
        "gateway/explain.cc",
        "        say_stale(told, served->reason, now);\n",
        "        told.next = NextAnswer::hit;\n",
        (("tests/cli/explain_test.py", "invalidated"),),
    ),
    # --- one rule for the stores
    Mistake(
        "keeping the bodies of a shared table on one machine",
        "isr/partners.cc",
        'if (!names.table.starts_with("dynamodb:") || !local) return {};',
        "if (!local || local) return {};",
        (("src/site/site_test",), *cli("a shared table with bodies of one machine")),
    ),
    Mistake(
        "letting the variable win over the option",
        "site/stores.cc",
        "if (auto option = said_by(options, kind, file_name))",
        "if (auto option = said_by(options, kind, file_name); option && !environment.get(std::string(kind.variable)))",
        (("src/site/site_test",), *cli("one rule chooses the stores")),
    ),
    Mistake(
        "letting the configuration win over the variable",
        "site/stores.cc",
        "if (auto text = environment.get(variable))",
        "if (auto text = environment.get(variable); text && !said_by(file, kind, file_name))",
        (("src/site/site_test",), *cli("one rule chooses the stores")),
    ),
    Mistake(
        "not telling by what the table was chosen",
        "cli/table.cc",
        'Field{"table_by", session.stores().table.why}',
        'Field{"table_by", session.stores().table.uri}',
        cli("one rule chooses the stores"),
    ),
    Mistake(
        "describing two stores that cannot be used together as if they could",
        "cli/table.cc",
        "if (!trouble.empty()) add(",
        "if (false) add(",
        cli("a shared table with bodies of one machine"),
    ),
    # --- nothing is deleted by mistake
    Mistake(
        "writing into bodies of another table",
        "isr/blocking.cc",
        "if (auto checked = check_may_write(report); !checked) return checked;",
        "",
        cli("gc deletes nothing"),
    ),
    Mistake(
        "serving with bodies of another table",
        "service/partner_watch.cc",
        "*stranger = !last.may_write();",
        "*stranger = false;",
        (("src/service/service_test", "--gtest_filter=PartnerWatch*"),),
    ),
    Mistake(
        "believing a table of which a row cannot be read",
    Mistake(
        "explaining marks without what the page has seen of them",
        "cli/explain.cc",
        "if (seen.tag == mark.tag) append(",
        "if (false) append(",
        (("tests/cli/explain_test.py", "beside what the page has seen"),),
    ),
        "isr/sweep.cc",
        "if (auto remembered = remember(item); !remembered) co_return remembered;",
        "static_cast<void>(remember(item));",
        protocol("*SweepTest*/memory"),
    ),
    Mistake(
        "taking the part of a table that could be read for all of it",
        "isr/sweep.cc",
        "    if (!page) co_return std::move(page).error();\n    for (const Item& item : page->items) {",
        "    if (!page) co_return Result<void>();\n    for (const Item& item : page->items) {",
        protocol("*SweepTest*/memory"),
    ),
    Mistake(
        "sweeping as fast as it goes",
        "isr/sweep.cc",
        "if (!options_.pace) co_return Result<void>();",
        "co_return Result<void>();",
        protocol("*SweepTest*/memory"),
    ),
    Mistake(
        "beginning every sweep anew",
        "isr/sweep.cc",
    Mistake(
        "opening stores for a program that keeps the bodies of a shared table on one machine",
        "isr/blocking.cc",
        "if (auto checked = check_reach(names); !checked) return checked.error();",
        "",
        protocol("BlockingTest.BodiesOfOneMachine*"),
    ),
        "if (token != nullptr) after = *token;",
        "",
        protocol("*SweepTest*/memory"),
    ),
    Mistake(
        "cleaning up only where somebody asks for it",
        "site/config.h",
        "bool enabled = true;\n  std::chrono::milliseconds released_after",
        "bool enabled = false;\n  std::chrono::milliseconds released_after",
        (("src/site/site_test",),),
    ),
    # --- the disk is bounded
    Mistake(
        "evicting pages that are in use first",
        "isr/evict.cc",
        "candidate.warmth = options_.warmth(",
        "candidate.warmth = -options_.warmth(",
        protocol("*EvictTest*/memory"),
    ),
    Mistake(
        "not knowing which bodies are in use",
        "cache/body_cache.cc",
        "? Warmth::used : Warmth::unused",
        "? Warmth::unused : Warmth::unused",
        (("src/cache/cache_test", "--gtest_filter=BodyCache*"),),
    ),
    Mistake(
        "admitting what there is no room for",
        "service/storage_budget.cc",
        "if (no_disk || too_many)",
        "if (too_many)",
        (("src/service/service_test", "--gtest_filter=StorageBudget*"),),
    ),
    Mistake(
        "admitting pages beyond their number",
        "service/storage_budget.cc",
        "if (no_disk || too_many)",
        "if (no_disk)",
        (("src/service/service_test", "--gtest_filter=StorageBudget*"),),
    ),
    Mistake(
        "forgetting what was admitted since the disk was measured",
        "service/storage_budget.cc",
        "admitted_ += more;",
        "",
        (("src/service/service_test", "--gtest_filter=StorageBudget*"),),
    ),
    Mistake(
        "evicting nothing however full the disk is",
        "service/storage_budget.cc",
        "return use_.used - evict_from() +",
        "return 0 * ",
        (("src/service/service_test", "--gtest_filter=StorageBudget*"),),
    ),
    Mistake(
        "evicting nothing however many pages there are",
        "service/storage_budget.cc",
        "? pages_ - *most_pages_ : 0",
        "? 0 : 0",
        (("src/service/service_test", "--gtest_filter=StorageBudget*"),),
    ),
    Mistake(
        "storing new pages whatever the budget says",
        "cache/flights.cc",
        "if (options_->has_room(rendered.body.bytes.size())) return false;",
        "return false;",
        (("src/cache/cache_test",),),
    ),
    # --- the protocol's edges
    Mistake(
        "succeeding in claiming what was completed before",
        "cli/request.cc",
        "return completed(page, before->row);",
        'return answer(page, "completed", before->row);',
        cli("requests are claimed"),
    ),
    Mistake(
        "extending a claim by another time than was asked for",
        "cli/request.cc",
        "extend(claim(page), length_)",
        "extend(claim(page), kShortestLease)",
        cli("idempotency on LMDB"),
    ),
    Mistake(
        "extending what is not in progress or somebody else's",
        "isr/requests.cc",
        "Condition condition = is_ours(claim) && std::move(shorter);",
        "Condition condition = std::move(shorter);",
        protocol("*RequestTest*/memory"),
    ),
    Mistake(
        "shortening a claim by extending it",
        "isr/requests.cc",
        "Condition condition = is_ours(claim) && std::move(shorter);",
        "Condition condition = is_ours(claim);",
        protocol("*RequestTest*/memory"),
    ),
    Mistake(
        "giving the same idempotency key to every deploy",
        "cli/request_name.cc",
        "deploy_id_.value_or(configured->deploy_id)",
        "std::string()",
        cli("a page is rendered once per deploy"),
    ),
    Mistake(
        "giving the same request to every deploy of a gateway",
        "gateway/page_visit.cc",
        "version.empty() ? *id : ",
        "true ? *id : ",
        (("src/gateway/gateway_test", "--gtest_filter=*eploy*"),),
    ),
    Mistake(
        "running a command whose output cannot be published",
        "cli/regenerate.cc",
        "if (const Result<void> checked = check(session, id->has_value()); !checked)",
        "if (const Result<void> checked{}; !checked)",
        cli("what cannot be published is told before the command runs"),
    ),
    Mistake(
        "leaving what COMMAND has started when regenerate is killed",
        "cli/subprocess.cc",
        "if (::read(0, &byte, 1) <= 0) kill_all(report.command);",
        "static_cast<void>(::read(0, &byte, 1));",
        cli("the command dies with a regenerate that is killed"),
    ),
    Mistake(
        "leaving COMMAND to its guard alone when regenerate is killed",
        "cli/subprocess.cc",
        "::prctl(PR_SET_PDEATHSIG, SIGKILL);",
        "",
        cli("the command dies with its guard"),
    ),
    Mistake(
        "writing an etag without quotes",
        "cli/page_options.cc",
        "etag_ = (weak ? \"W/\\\"\" : \"\\\"\") + std::string(inside) + '\"';",
        "etag_ = value;",
        cli("an etag is quoted"),
    ),
    Mistake(
        "leasing for as long as visitors wait",
        "cache/page_policy.h",
        "std::chrono::seconds lease{10};",
        "std::chrono::seconds lease{30};",
        (("src/site/site_test",),),
        ("site",),
    ),
    Mistake(
        "printing the page that is current for a version",
        "cli/get.cc",
        "if (version_) return kept(session, page);",
        "",
        cli("kept versions and bodies are printed"),
    ),
    Mistake(
        "not finding a body by its key",
        "cli/get.cc",
        "session.isr_with_bodies().read_stored(s3_key);",
        'session.isr_with_bodies().read_stored("x" + s3_key);',
        cli("kept versions and bodies are printed"),
    ),
    Mistake(
        "comparing a version with itself",
        "cli/diff.cc",
        'version(session, page, "B", *second_)',
        'version(session, page, "B", *first_)',
        cli("two versions are compared"),
    ),
    Mistake(
        "comparing bytes without status and header fields",
        "cli/diff.cc",
        "as_text(from.body)",
        "as_text(to.body)",
        cli("two versions are compared"),
    ),
    # --- beside the real FaceTheory, and what lives on one loop
    Mistake(
        "dropping parameters of campaigns from FaceTheory's key",
        "site/read_routes.cc",
        "route_.key != KeyStyle::facetheory;",
        "true;",
        (("src/site/site_test",),),
    ),
    Mistake(
        "not noticing what is used on another thread than its own",
        "base/loop_bound.h",
        "if (!is_here()) [[unlikely]]",
        "if (false)",
        (("src/base/base_test", "--gtest_filter=LoopBound*"),),
    ),
    Mistake(
        "taking every thread for the loop's own",
        "base/loop_bound.h",
        "loop_ ? loop_->running_in_this_thread() : strand_->running_in_this_thread()",
        "true",
        (("src/base/base_test", "--gtest_filter=LoopBound*"),),
    ),
    Mistake(
        "rendering without a table on the loop that serves",
        "cache/engine.cc",
        "co_await run_on(boost::asio::make_strand(executor_), std::move(render));",
        "co_await std::move(render);",
        (("src/cache/cache_test", "--gtest_filter=EngineTest*"),),
    ),
]
    Mistake(
        "overlooking the policy version that the configuration names",
        "cli/request_name.cc",
        "policy_version_.value_or(configured->policy_version)",
        'policy_version_.value_or("")',
        cli("a version that is left out"),
    ),
    Mistake(
        "giving the same request to every policy version of a gateway",
        "gateway/page_visit.cc",
        "key_of_version(*id, version.deploy_id, version.policy_version)",
        'key_of_version(*id, version.deploy_id, "")',
        (("src/gateway/gateway_test", "--gtest_filter=*eploy*"),),
    ),
