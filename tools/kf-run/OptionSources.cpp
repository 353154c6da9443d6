//===- OptionSources.cpp - Options from files and presets -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ForeignFlags.h"
#include "NearestName.h"
#include "OptionParser.h"
#include "Presets.h"
#include "Report.h"

#include "runtime/core/Quote.h"

#include <algorithm>

using namespace kf;

static std::vector<std::string_view> &commandNames() {
  static std::vector<std::string_view> names;
  return names;
}

void kf::setCommandNames(std::vector<std::string_view> names) {
  commandNames() = std::move(names);
}

void OptionParser::presets() {
  choice({"preset", 0, "NAME"}, presetName, {"latency", "throughput", "memory"},
         "a bundle of options for latency, throughput or memory, which 'kf-run "
         "help presets' lists; options that are given go before it");
}

/// Whether the command line says what the option `name` would.
bool OptionParser::isGiven(std::string_view name) const {
  return std::ranges::find(givenOtherwise, name) != givenOtherwise.end() ||
         std::ranges::any_of(uses, [&](const Use &use) {
           return use.option->name.name == name;
         });
}

/// The option that a key names; null for what is of no effect.
Result<const OptionParser::Option *>
OptionParser::findKey(const ConfigEntry &entry) {
  if (entry.name == "config")
    return Status::error(inQuotes(entry.key) + " is of the command line alone");
  if (const Option *own = findNamed(entry.name))
    return own;
  if (const ForeignFlag *flag = findForeign("--" + entry.name)) {
    const std::string said =
        inQuotes(entry.key) + " " + std::string(flag->text);
    if (flag->meaning == ForeignFlag::Same)
      return findNamed(flag->text);
    if (isRefused(*flag, entry.value->is_string()
                             ? entry.value->get<std::string>()
                             : entry.value->dump()))
      return Status::error(said);
    if (flag->meaning == ForeignFlag::NoEffect)
      notes.push_back(said);
    return nullptr;
  }
  std::string_view nearest = nearestName(entry.name, names());
  for (const Option &option : options) // letters are of command lines
    if (entry.name == std::string_view(&option.name.letter, 1))
      nearest = option.name.name;
  return Status::error(
      "'" + tool + " " + command() + "' has no option " + inQuotes(entry.key) +
      (nearest.empty() ? "" : ", the nearest is " + inQuotes(nearest)) +
      "; what is of another command goes into an object of its name");
}

/// Adds what `entries` say, which goes before what is there.
Status OptionParser::addConfig(const std::vector<ConfigEntry> &entries) {
  std::vector<std::pair<const Option *, const ConfigEntry *>> found;
  for (const ConfigEntry &entry : entries) {
    KF_ASSIGN_OR_RETURN(const Option *option, findKey(entry));
    if (!option)
      continue;
    for (auto [other, first] : found)
      if (other == option)
        return Status::error(inQuotes(first->key) + " and " +
                             inQuotes(entry.key) +
                             " are the same option; give one");
    found.emplace_back(option, &entry);
  }
  for (auto [option, entry] : found) {
    KF_ASSIGN_OR_RETURN(auto values, optionValues(*entry, option->kind));
    std::erase_if(configUses, [wanted = option](const Use &use) {
      return use.option == wanted;
    });
    if (isGiven(option->name.name))
      continue;
    for (std::optional<std::string> &value : values)
      configUses.push_back({option,
                            quotePath(configFile) + ": " + inQuotes(entry->key),
                            std::move(value)});
  }
  return Status();
}

/// Reads the file of --config, if it is given. Returns an exit code where the
/// command cannot go on.
std::optional<int> OptionParser::useConfig() {
  std::string path;
  for (const Use &use : uses)
    if (use.option->name.name == "config")
      path = use.value.value_or("");
  if (path.empty())
    return std::nullopt;
  configFile = path;
  const Result<ConfigFile> config =
      ConfigFile::read(path, command(), commandNames());
  if (!config.ok())
    return report(config.status());
  for (const std::vector<ConfigEntry> *entries :
       {&config->common, &config->own})
    if (Status status = addConfig(*entries); !status.ok())
      return usageError(status.in(quotePath(path)).message());
  return std::nullopt;
}

/// Adds what the preset that somebody names sets, of what nobody else says.
void OptionParser::usePreset() {
  std::string_view name;
  for (const std::vector<Use> *list : {&configUses, &uses})
    for (const Use &use : *list)
      if (use.option->name.name == "preset")
        name = use.value ? std::string_view(*use.value) : "";
  const Preset *found = findPreset(name);
  if (!found)
    return; // what is wrong with it, its option tells
  preset.name = name;
  std::string said;
  for (const PresetSetting &setting : found->settings) {
    const Option *option = findNamed(setting.option);
    const bool isSaid = isGiven(setting.option) ||
                        std::ranges::any_of(configUses, [&](const Use &use) {
                          return use.option == option;
                        });
    if (!option || isSaid || !setting.isOf(command()))
      continue;
    std::string spelled = "--" + std::string(setting.option);
    said += " " + spelled + " " + std::string(setting.value);
    preset.options.emplace_back(setting.option, setting.value);
    presetUses.push_back(
        {option, std::move(spelled), std::string(setting.value)});
  }
  notes.push_back("preset " + preset.name +
                  (said.empty() ? " sets nothing here" : " sets" + said));
}

/// Sets what is said, the command line's last.
Status OptionParser::setAll() {
  for (const std::vector<Use> *list : {&presetUses, &configUses, &uses})
    for (const Use &use : *list) {
      const Status status = use.option->set(
          use.value ? std::string_view(*use.value) : std::string_view());
      isQuiet |= use.option->name.name == "quiet";
      if (!status.ok())
        return Status::error(use.spelled + " " + status.message());
    }
  return Status();
}
