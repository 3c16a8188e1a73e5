// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace lockstep {

std::string prometheus_text(const std::vector<Sample>& samples) {
  std::vector<prometheus::MetricFamily> families;
  for (const Sample& sample : samples) {
    if (families.empty() || families.back().name != sample.name) {
      const bool counts = sample.kind == Sample::Kind::counter;
      families.push_back(
          {sample.name, sample.help, counts ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge, {}});
    }
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
    metric.counter.value = sample.value;
    metric.gauge.value = sample.value;
    families.back().metric.push_back(std::move(metric));
  }
  return prometheus::TextSerializer{}.Serialize(families);
}

}  // namespace lockstep
