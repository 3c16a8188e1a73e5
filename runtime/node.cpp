// SPDX-License-Identifier: Apache-2.0
#include "runtime/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "journal/directory.hpp"
#include "journal/skips.hpp"
#include "runtime/hash_page.hpp"
#include "runtime/node_parts.hpp"
#include "runtime/recorded_roots.hpp"

namespace lockstep {
namespace {

NodeLayout choose_layout(const NodeConfig& config) {
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  NodeLayout layout;
  layout.executors = config.executors != 0 ? config.executors : cores - std::min(cores - 1, config.perimeters);
  layout.own_threads = config.threads == "auto" ? cores > 1 : config.threads == "dedicated";
  const std::uint32_t threads = layout.own_threads ? layout.executors + config.perimeters : 1;
  layout.spin_ns = config.spin_us >= 0 ? config.spin_us * 1000 : (threads < cores ? 20'000 : 0);
  return layout;
}

/// Records that a perimeter beside the first may be ahead of the sequencer.
constexpr std::size_t record_ring_bytes = 4U << 20;

std::uint32_t executor_of_actor(const void* execution, const Address& actor) {
  return static_cast<const Execution*>(execution)->owner(actor);
}

}  // namespace

Result<void> Node::Parts::open() {
  if (const auto valid = validate(config); !valid) return valid;
  layout = choose_layout(config);
  DirectoriesMade directories(reactors[0]->disk(), config.data);
  auto recovered = recover_journal();
  if (!recovered) return std::unexpected(recovered.error());
  const bool created = recovered->created && directories.was_empty();
  auto opened = open_on(*recovered);
  // A first start that is refused leaves nothing; the hold on the directory is still there, so nobody else's goes.
  if (!opened && created) clear_data_directory(reactors[0]->disk(), config.data);
  if (opened) directories.keep();
  return opened;
}

Result<void> Node::Parts::open_on(Recovered& recovered) {
  identity = recovered.hard_state.value();
  if (auto run = run_journal(recovered.position); !run) return run;
  sequencer = std::make_unique<Sequencer>(execution->pool(), history.end,
                                          Sequencer::Options{.seal_depth = config.seal_depth,
                                                             .schema_id = application.schema_id(),
                                                             .session_expiry_ns = genesis.session_expiry_ns,
                                                             .snapshots = execution->snapshots(),
                                                             .checkpoint_interval = genesis.checkpoint_interval});
  for (const auto& [session, last_activity_ns] : execution->sessions())
    sequencer->add_session(session, last_activity_ns);
  if (halted_before) {
    untouched.emplace(std::move(recovered));
  } else if (auto opened = open_journal(std::move(recovered)); !opened) {
    return opened;
  }
  if (auto bound = open_perimeters(); !bound) return bound;
  make_runners();
  return open_admin();
}

/// Ready to go on behind the history.
Result<void> Node::Parts::open_journal(Recovered&& recovered) {
  JournalOptions options;
  options.segment_bytes = config.segment_bytes;
  options.max_inflight = config.journal_inflight;
  options.max_batch_bytes = config.max_batch_bytes;
  auto opened = JournalWriter::open(reactors[0]->disk(), std::move(recovered), options, application.schema());
  if (!opened) return std::unexpected(opened.error());
  writer = std::move(*opened);
  journal = std::make_unique<JournalAgent>(*writer, execution->pool(), config.durability, execution->snapshots());
  for (std::uint32_t i = 0; i < layout.executors; ++i) sequencer->add_due(execution->due(i));
  if (history.end.index == 0) sequencer->append_genesis(encode(genesis), clock.real_ns());
  return {};
}

Result<Recovered> Node::Parts::recover_journal() {
  std::vector<Finding> findings;
  auto recovered = recover(reactors[0]->disk(),
                           {.directory = config.data, .consent = [this] { return look_before_settling(); }}, &findings);
  for (const Finding& finding : findings) log(LogLevel::warning, "journal", "{}", describe(finding));
  return recovered;
}

Result<void> Node::Parts::open_perimeters() {
  for (std::uint32_t i = 0; i < config.perimeters; ++i) {
    make_perimeter(i);
    if (auto bound = listen(*perimeters.back(), config.listen, CodecKind::native, native); !bound) return bound;
    if (config.resp.empty()) continue;
    if (resp_application == nullptr)
      return fail(ErrorCode::usage, "this program's actors do not speak to Redis clients; leave out --resp");
    if (auto bound = listen(*perimeters.back(), config.resp, CodecKind::resp, resp); !bound) return bound;
  }
  return {};
}

void Node::Parts::make_perimeter(std::uint32_t index) {
  Intake::Routes routes;
  if (index == 0) {
    routes.sequencer = sequencer.get();
  } else {
    inbound.push_back(
        std::make_unique<ByteRing>(std::max<std::size_t>(record_ring_bytes, std::size_t{4} * config.max_frame_bytes)));
    sequencer->add_inbound(*inbound.back());
    routes.records = inbound.back().get();
  }
  for (std::uint32_t i = 0; i < layout.executors; ++i) routes.queries.push_back(&execution->queries(i, index));
  routes.executor_of = executor_of_actor;
  routes.context = execution.get();
  routes.halted = halted_before.has_value();
  Perimeter::Options options;
  options.max_connections = config.max_connections;
  options.frame_timeout_ns = std::int64_t{config.frame_timeout_ms} * 1'000'000;
  options.max_output_bytes = config.output_limit_bytes;
  options.max_payload_bytes = config.max_frame_bytes;
  options.codec.reply_window = genesis.reply_window;
  options.codec.session_expiry_ms =
      static_cast<std::uint32_t>(std::min<std::int64_t>(genesis.session_expiry_ns / 1'000'000, UINT32_MAX));
  options.incarnation = identity.incarnation;
  options.index = static_cast<std::uint8_t>(index);
  options.schema_id = application.schema_id();
  if (resp_application != nullptr) options.resp = *resp_application;
  perimeters.push_back(
      std::make_unique<Perimeter>(reactors[index]->network(), application, std::move(routes), options));
  for (std::uint32_t i = 0; i < layout.executors; ++i) perimeters.back()->add_answers(execution->replies(i, index));
}

/// The first perimeter binds what was asked for, the others the port it got.
Result<void> Node::Parts::listen(Perimeter& perimeter, const std::string& wanted, CodecKind codec,
                                 io::Endpoint& bound) {
  auto at = parse_endpoint(wanted);
  if (!at) return std::unexpected(at.error());
  at->shared = config.perimeters > 1;
  if (bound.port != 0) at->port = bound.port;
  auto listening = perimeter.listen(*at, codec);
  if (!listening) return std::unexpected(listening.error());
  bound = *listening;
  return {};
}

Result<void> Node::Parts::open_admin() {
  if (config.admin.empty()) return {};
  const auto at = parse_endpoint(config.admin);
  if (!at) return std::unexpected(at.error());
  const HashOrigin origin{identity.cluster_id, genesis.application, genesis_digest(genesis)};
  auto server =
      AdminServer::start(*at, {.metrics = [this] { return prometheus_text(samples()); },
                               .status = [this] { return status(); },
                               .hash = [this, origin] { return print_hash_page({origin, checkpoints->recent()}); },
                               .snapshot = [this](bool ask) { return snapshot_page(ask); }});
  if (!server) return std::unexpected(server.error());
  admin = std::move(*server);
  return {};
}

void Node::Parts::make_runners() {
  std::vector<Agent*> front{perimeters[0].get()};
  if (journal != nullptr) front.insert(front.end(), {sequencer.get(), journal.get()});
  front.push_back(checkpoints.get());
  if (!layout.own_threads)
    for (std::uint32_t i = 0; i < layout.executors; ++i) front.push_back(&execution->agent(i));
  if (!layout.own_threads && snapshots != nullptr) front.push_back(snapshots.get());
  const auto options = [this](std::string name) {
    const int cpu = config.pin ? static_cast<int>(runners.size()) : -1;
    return RunnerOptions{.name = std::move(name), .cpu = cpu, .spin_ns = layout.spin_ns};
  };
  runners.push_back(std::make_unique<Runner>(options("perimeter"), clock, reactors[0].get(), front));
  runners[0]->set_on_stop([this] { close_journal(); });
  for (std::uint32_t i = 1; i < config.perimeters; ++i)
    runners.push_back(std::make_unique<Runner>(options(fmt::format("perimeter-{}", i)), clock, reactors[i].get(),
                                               std::vector<Agent*>{perimeters[i].get()}));
  for (std::uint32_t i = 0; layout.own_threads && i < layout.executors; ++i)
    runners.push_back(std::make_unique<Runner>(options(fmt::format("executor-{}", i)), clock, nullptr,
                                               std::vector<Agent*>{&execution->agent(i)}));
  Runner::introduce(runners);
  if (layout.own_threads && snapshots != nullptr) make_snapshot_runner();
}

/// It wakes executors that wait for room; nobody wakes it, so that a snapshot costs the message path no system call.
void Node::Parts::make_snapshot_runner() {
  auto runner = std::make_unique<Runner>(RunnerOptions{.name = "snapshots"}, clock, nullptr,
                                         std::vector<Agent*>{snapshots.get()});
  std::vector<Runner*> executors;
  for (std::size_t i = config.perimeters; i < runners.size(); ++i) executors.push_back(runners[i].get());
  runner->set_peers(std::move(executors));
  runners.push_back(std::move(runner));
}

/// On the perimeter's thread, which the disk's ring belongs to.
void Node::Parts::close_journal() {
  if (writer == nullptr) return;
  if (const auto closed = writer->close([this] { reactors[0]->turn(); }); !closed) close_error = closed.error();
}

/// Once no thread runs and the journal is closed, and so durable: leaves the root of the very end, so that a replay has
/// something to be compared with there.
Result<void> Node::Parts::close_hash_log() {
  if (checkpoints->log_failed()) return {};
  BatchPool& pool = execution->pool();
  const std::uint64_t last = pool.sealed();
  if (pool.executed_by_all() == last && last != hash_log->last_index()) {
    const Checkpoint end = execution->end(pool.header(last));
    if (const auto added = hash_log->append(hash_entry(end, HashKind::closing, true)); !added) return added;
  }
  return hash_log->sync();
}

void Node::Parts::wait_until_drained(std::int64_t deadline_ns) {
  BatchPool& pool = execution->pool();
  const auto stopped = [&] { return std::ranges::all_of(perimeters, [](const auto& p) { return p->stopped(); }); };
  const auto drained = [&] {
    const std::uint64_t sealed = pool.sealed();
    return pool.executed_by_all() == sealed && pool.written().read() == sealed;
  };
  while (clock.steady_ns() < deadline_ns && !failed() && (!stopped() || !drained()))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Once no thread runs, of a stop that ran out of time: a full disk, as a rule.
void Node::Parts::tell_what_is_left() const {
  const std::uint64_t unwritten = writer == nullptr ? 0 : execution->pool().sealed() - writer->durable_index();
  std::uint64_t unanswered = 0;
  for (const auto& perimeter : perimeters) unanswered += perimeter->metrics().unanswered_total.value();
  if (unwritten == 0 && unanswered == 0) return;
  log(LogLevel::warning, "node",
      "within shutdown_timeout_ms, {} requests were not answered and {} batches not written{}; none of it was "
      "acknowledged, and what was written of it will be executed at the next start",
      unanswered, unwritten, journal != nullptr && journal->lacks_space() ? ", for there is no space" : "");
}

Result<std::unique_ptr<Node>> Node::open(const Application& application, const resp::Application* resp,
                                         const NodeConfig& config, Clock& clock, const ReactorFactory& make_reactor,
                                         const StartProgress& progress) {
  auto parts = std::make_unique<Parts>(application, resp, config, clock);
  parts->progress = progress;
  for (std::uint32_t i = 0; i < config.perimeters; ++i) {
    auto reactor = make_reactor();
    if (!reactor) return std::unexpected(reactor.error());
    parts->reactors.push_back(std::move(*reactor));
  }
  if (auto opened = parts->open(); !opened) return std::unexpected(opened.error());
  return std::unique_ptr<Node>(new Node(std::move(parts)));
}

Node::Node(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Node::~Node() {
  if (parts_->started) (void)stop();
  parts_->admin.reset();   // its handlers read the other parts
  parts_->writer.reset();  // what it has in flight lies in the pool's slabs
}

int Node::turn() {
  LOCKSTEP_ASSERT(!parts_->layout.own_threads, "a node is turned by its caller only when all agents share one thread");
  return parts_->runners[0]->turn();
}

void Node::start() {
  parts_->started = true;
  for (auto& runner : parts_->runners) runner->start();
}

Result<void> Node::stop() {
  if (!std::exchange(parts_->started, false)) return {};
  const std::int64_t deadline_ns =
      parts_->clock.steady_ns() + std::int64_t{parts_->config.shutdown_timeout_ms} * 1'000'000;
  for (auto& perimeter : parts_->perimeters) perimeter->request_stop(deadline_ns - 500'000'000);
  for (auto& runner : parts_->runners) runner->notify();
  parts_->wait_until_drained(deadline_ns);
  for (auto& runner : parts_->runners) runner->request_stop();
  for (auto& runner : parts_->runners) runner->join();
  if (parts_->actor_log != nullptr) (void)parts_->actor_log->close();  // it has reported its own error
  if (parts_->failed()) return std::unexpected(parts_->journal->failure());
  if (parts_->close_error) return std::unexpected(*parts_->close_error);
  parts_->tell_what_is_left();
  return parts_->close_hash_log();
}

bool Node::failed() const {
  return parts_->failed();
}
const Error& Node::failure() const {
  return parts_->journal->failure();
}
const io::Endpoint& Node::native_endpoint() const {
  return parts_->native;
}
const io::Endpoint& Node::resp_endpoint() const {
  return parts_->resp;
}
io::Endpoint Node::admin_endpoint() const {
  return parts_->admin ? parts_->admin->endpoint() : io::Endpoint{};
}

std::string Node::summary() const {
  const HistoryPosition& end = parts_->history.end;
  return fmt::format("{}: {} batches, seq {}, chain {}; {} executors {}, durability {}, {}", parts_->config.data,
                     end.index, end.seq, end.chain.short_hex(), parts_->layout.executors,
                     parts_->layout.own_threads ? "on threads of their own" : "on the perimeter's thread",
                     durability_name(parts_->config.durability), parts_->reactors[0]->backend());
}

}  // namespace lockstep
