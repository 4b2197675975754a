// Parts of a plan as JSON, for k31c inspect.
#pragma once
#include "runtime/schema/plan_generated.h"
#include <nlohmann/json.hpp>

namespace k31::tool {

nlohmann::ordered_json factsJson(const plan::Plan &plan); // version, key, mesh, model, images, entries
// The table of a stage; that of the first has the others under "stages".
nlohmann::ordered_json memoryJson(const plan::Plan &plan, uint32_t stage = 0);
// Commands by entry, all of them or the collectives alone.
nlohmann::ordered_json scheduleJson(const plan::Plan &plan, bool collectivesOnly);
nlohmann::ordered_json kernelsJson(const plan::Plan &plan);
nlohmann::ordered_json weightsJson(const plan::Plan &plan);

} // namespace k31::tool
