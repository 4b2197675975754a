#include "tools/k31_run/profile.h"
#include "runtime/base/cat.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace k31::run {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + int64_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// "layers.12.mlp" to "layers.*.mlp".
static std::string folded(const plan::Launch &launch) {
  std::string label = launch.label() ? launch.label()->str() : "";
  constexpr std::string_view prefix = "layers.";
  if (label.starts_with(prefix))
    label.replace(prefix.size(), label.find('.', prefix.size()) - prefix.size(), "*");
  return label;
}

void Profile::start(Session &observed, uint32_t number, const Live &what) {
  session = &observed, entry = number, live = what, traced = runs;
  const plan::Plan &plan = session->plan();
  session->observe(
      [this, &plan](const plan::Launch &launch, std::span<const std::span<const std::byte>> args) {
        Clock::time_point end = Clock::now();
        if (const auto device = session->launch_seconds()) // without the time of copies and of the launch's way to the device
          end = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*device));
        const uint64_t bytes = bytes_moved(plan, *plan.entries()->Get(entry), launch, args, live);
        Samples &samples = by_launch[&launch];
        samples.seconds.push_back(std::chrono::duration<double>(end - begin).count());
        samples.bytes += bytes;
        if (traced != runs)
          events.clear(), traced = runs;
        events.push_back({&launch, begin, end, bytes});
      },
      [this](const plan::Launch &, std::span<const std::span<const std::byte>>) { begin = Clock::now(); }, Shown::counts);
}

void Profile::stop() { session->observe({}); }

std::vector<Profile::Op> Profile::ops() const {
  std::map<std::pair<std::string, std::string>, Op> sums;
  for (const auto &[launch, samples] : by_launch) {
    const std::string op = folded(*launch), kernel = session->plan().kernels()->Get(launch->kernel())->name()->str();
    Op &sum = sums[{op, kernel}];
    sum.op = op, sum.kernel = kernel;
    ++sum.launches, sum.bytes += samples.bytes / samples.seconds.size(), sum.seconds += median(samples.seconds);
  }
  std::vector<Op> list;
  for (const auto &[key, op] : sums)
    list.push_back(op);
  std::sort(list.begin(), list.end(), [](const Op &a, const Op &b) { return a.seconds > b.seconds; });
  return list;
}

double Profile::seconds() const {
  double sum = 0;
  for (const auto &[launch, samples] : by_launch)
    sum += median(samples.seconds);
  return sum;
}

std::string Profile::trace_events(const std::string &process, int number) const {
  using Json = nlohmann::ordered_json;
  std::string text = Json{{"name", "process_name"}, {"ph", "M"}, {"pid", number}, {"args", {{"name", process}}}}.dump();
  const auto micros = [&](Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); };
  for (const Event &event : events) {
    const plan::Kernel &kernel = *session->plan().kernels()->Get(event.launch->kernel());
    text += ",\n" + Json{{"name", event.launch->label() ? event.launch->label()->str() : kernel.name()->str()},
                         {"cat", kernel.name()->str()},
                         {"ph", "X"},
                         {"pid", number},
                         {"tid", 0},
                         {"ts", micros(event.begin - events.front().begin)},
                         {"dur", micros(event.end - event.begin)},
                         {"args", {{"kernel", kernel.name()->str()}, {"tasks", event.launch->grid_x()}, {"bytes", event.bytes}}}}
                        .dump();
  }
  return text;
}

} // namespace k31::run
