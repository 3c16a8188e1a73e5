// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "runtime/agents/frames.hpp"
#include "runtime/json_text.hpp"
#include "runtime/node_parts.hpp"

namespace lockstep {

std::vector<Sample> Node::Parts::samples() const {
  using Kind = Sample::Kind;
  const BatchPool& pool = execution->pool();
  std::vector<Sample> all;
  const auto add = [&](Kind kind, const char* name, const char* help, const Counter PerimeterMetrics::* counter) {
    double sum = 0;
    for (const auto& perimeter : perimeters) sum += static_cast<double>((perimeter->metrics().*counter).value());
    all.push_back({kind, name, help, sum, {}});
  };
  using M = PerimeterMetrics;
  add(Kind::gauge, "lockstep_connections", "Clients connected now.", &M::connections);
  add(Kind::counter, "lockstep_connections_total", "Clients that connected.", &M::connections_total);
  add(Kind::counter, "lockstep_connections_refused_total", "Clients beyond the limit.", &M::connections_refused_total);
  add(Kind::counter, "lockstep_clients_overdue_total", "Clients that did not finish a hello or a frame in time.",
      &M::overdue_total);
  add(Kind::counter, "lockstep_clients_cut_off_total", "Clients that did not read.", &M::cut_off_total);
  add(Kind::counter, "lockstep_received_bytes_total", "From clients.", &M::received_bytes_total);
  add(Kind::counter, "lockstep_sent_bytes_total", "To clients.", &M::sent_bytes_total);
  add(Kind::counter, "lockstep_requests_total", "Requests stamped.", &M::requests_total);
  add(Kind::counter, "lockstep_queries_total", "Queries let in.", &M::queries_total);
  add(Kind::counter, "lockstep_session_records_total", "Sessions' beginnings, resumptions and ends stamped.",
      &M::session_records_total);
  add(Kind::counter, "lockstep_answers_total", "Answers sent.", &M::answers_total);
  add(Kind::counter, "lockstep_answers_orphaned_total", "Answers whose client had gone.", &M::orphans_total);
  add(Kind::counter, "lockstep_holds_total", "Times a client was not read, as back-pressure.", &M::holds_total);
  all.push_back({Kind::gauge, "lockstep_batch_sealed", "Last batch sealed.", static_cast<double>(pool.sealed()), {}});
  all.push_back({Kind::gauge,
                 "lockstep_batch_executed",
                 "Last batch that all executors ran.",
                 static_cast<double>(pool.executed_by_all()),
                 {}});
  all.push_back({Kind::gauge,
                 "lockstep_halted",
                 "1: halted before a message that crashes the program.",
                 halted_before ? 1.0 : 0.0,
                 {}});
  all.push_back({Kind::gauge,
                 "lockstep_lacks_space",
                 "1: no room for the next segment; clients are held back.",
                 journal != nullptr && journal->lacks_space() ? 1.0 : 0.0,
                 {}});
  add_reactor_samples(all);
  add_snapshot_samples(all);
  add_actor_log_samples(all);
  for (std::size_t i = 1; i < wire::wire_error_count; ++i) {  // 0 is no WireError
    double sum = 0;
    for (const auto& perimeter : perimeters) sum += static_cast<double>(perimeter->metrics().errors_total[i].value());
    all.push_back({Kind::counter,
                   "lockstep_refusals_total",
                   "Requests refused before the stamp, by reason.",
                   sum,
                   {{"reason", std::string(refusal_text(static_cast<wire::WireError>(i)))}}});
  }
  return all;
}

void Node::Parts::add_reactor_samples(std::vector<Sample>& all) const {
  using C = io::ReactorCounters;
  const auto add = [&](const char* name, const char* help, std::uint64_t C::* counter) {
    double sum = 0;
    for (const auto& reactor : reactors) sum += static_cast<double>(reactor->counters().*counter);
    all.push_back({Sample::Kind::counter, name, help, sum, {}});
  };
  add("lockstep_completion_queue_overflows_total", "Turns that found io_uring's completion queue overflown.",
      &C::queue_overflows);
  add("lockstep_receive_buffer_shortages_total", "Times a client waited for a receive buffer.", &C::buffer_shortages);
  add("lockstep_receives_rearmed_total", "Multishot receives started again.", &C::receives_rearmed);
  add("lockstep_accept_pauses_total", "Times accepting rested, out of descriptors or memory.", &C::accept_pauses);
}

void Node::Parts::add_snapshot_samples(std::vector<Sample>& all) const {
  if (snapshots == nullptr) return;
  const SnapshotMetrics& metrics = snapshots->metrics();
  const auto add = [&](Sample::Kind kind, const char* name, const char* help, double value) {
    all.push_back({kind, name, help, value, {}});
  };
  using enum Sample::Kind;
  const auto value = [](const Counter& from) { return static_cast<double>(from.value()); };
  add(counter, "lockstep_snapshots_total", "Snapshots taken.", value(metrics.taken_total));
  add(counter, "lockstep_snapshots_abandoned_total", "Snapshots given up, for lack of quota or disk.",
      value(metrics.abandoned_total));
  add(counter, "lockstep_snapshot_bytes_total", "Written into snapshots.", value(metrics.bytes_total));
  add(gauge, "lockstep_snapshot_batch", "Batch of the newest snapshot.", value(metrics.last_index));
  add(gauge, "lockstep_snapshot_duration_seconds", "From the wish to the newest snapshot until it was durable.",
      value(metrics.last_duration_ns) / 1e9);
}

void Node::Parts::add_actor_log_samples(std::vector<Sample>& all) const {
  if (actor_log == nullptr) return;
  const RecordLogCounters counters = actor_log->counters();
  using enum Sample::Kind;
  const auto add = [&](Sample::Kind kind, const char* name, const char* help, std::uint64_t value) {
    all.push_back({kind, name, help, static_cast<double>(value), {}});
  };
  add(counter, "lockstep_actor_log_lines_total", "Lines that actors logged.", counters.appended_records);
  add(counter, "lockstep_actor_log_dropped_total", "Lines left out because the log's ring was full.",
      counters.dropped_records);
  add(counter, "lockstep_actor_log_written_bytes_total", "Of lines, in the file.", counters.written_bytes);
  add(gauge, "lockstep_actor_log_failed", "1: its disk failed; the log has ended, the node goes on.",
      actor_log->failed() ? 1 : 0);
}

std::string Node::Parts::snapshot_page(bool ask) const {
  nlohmann::json page{{"schema", "lockstep.snapshot/1"}, {"data", config.data}};
  if (snapshots == nullptr) {
    page["failure"] = "the node is halted: there is nothing new to take a snapshot of";
    return json_text(page);
  }
  if (ask) page["asked"] = snapshots->ask();
  const SnapshotAgent::Answer answer = snapshots->answer();
  page["done"] = answer.done;
  page["batch"] = answer.last_index;
  page["failure"] = answer.failure;
  return json_text(page);
}

std::string Node::Parts::status() const {
  const BatchPool& pool = execution->pool();
  nlohmann::json page{{"schema", "lockstep.status/1"},
                      {"data", config.data},
                      {"replica", identity.replica_id},
                      {"incarnation", identity.incarnation},
                      {"durability", durability_name(config.durability)},
                      {"io", reactors[0]->backend()},
                      {"perimeters", config.perimeters},
                      {"executors", layout.executors},
                      {"threads", layout.own_threads ? "dedicated" : "one"},
                      {"listen", native.text()},
                      {"resp", resp.port == 0 ? "" : resp.text()},
                      {"batch_sealed", pool.sealed()},
                      {"batch_executed", pool.executed_by_all()},
                      {"failed", failed()}};
  if (failed()) page["failure"] = journal->failure().message;
  if (journal != nullptr) page["lacks_space"] = journal->lacks_space();
  if (halted_before) page["halted"] = {{"before_seq", halted_before->seq}, {"deaths", halted_before->count}};
  return json_text(page);
}

}  // namespace lockstep
