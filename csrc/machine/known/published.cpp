#include "machine/known/published.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/json/members.h"
#include "core/phrases.h"

namespace roofprof {
namespace {

// A value with its unit and the key of its source.
struct PublishedFigure {
  double value = 0;
  std::string unit;
  std::string source;
  std::string engine;           // of a peak: what computes it
  std::string basis;            // of a cache's bandwidth and of what it holds: "published", "measured" or "scaled"
  std::string note;             // what the source says it is
  std::string kind;             // of a link: "NVLink 4"
  std::string from;             // of a scaled figure: the card that was measured,
  std::vector<std::string> by;  // and the figures that it is scaled by

  std::string text() const { return short_text(value, 15) + " " + unit; }
};

ROOFPROF_MEMBERS(PublishedFigure, ALWAYS(value, unit, source), UNLESS_DEFAULT(engine, basis, note, kind, from, by))

struct Card {
  std::string name;
  std::vector<std::string> aliases;
  std::vector<std::string> device_names;
  std::string compute_capability;
  std::vector<std::pair<std::string, PublishedFigure>> peaks;  // by dtype
  std::optional<PublishedFigure> boost_clock;
  std::optional<PublishedFigure> tensor_clock;
  std::optional<PublishedFigure> sms;
  std::optional<PublishedFigure> cus;
  // Caches that all of the chip shares: levels of the roofs where their bandwidth is known. What was seen to be in one
  // is its effective size.
  std::optional<PublishedFigure> l2;
  std::optional<PublishedFigure> l2_effective;
  std::optional<PublishedFigure> l2_bandwidth;
  std::optional<PublishedFigure> infinity_cache;
  std::optional<PublishedFigure> infinity_cache_bandwidth;
  std::optional<PublishedFigure> memory;
  bool inline_ecc = false;
  PublishedFigure dram;
  std::optional<PublishedFigure> link;  // its rate is that of both directions together
  std::optional<PublishedFigure> tdp;
};

ROOFPROF_MEMBERS(Card, ALWAYS(name, aliases, device_names, peaks, dram),
                 UNLESS_DEFAULT(compute_capability, boost_clock, tensor_clock, sms, cus, l2, l2_effective, l2_bandwidth,
                                infinity_cache, infinity_cache_bandwidth, memory, inline_ecc, link, tdp))

// A document, and the place in it.
struct Source {
  std::string title;
  std::string where;
};

ROOFPROF_MEMBERS(Source, ALWAYS(title, where))

struct Cards {
  std::map<std::string, double, std::less<>> units;  // what one of a unit is
  std::map<std::string, Source, std::less<>> sources;
  std::vector<Card> cards;
};

ROOFPROF_MEMBERS(Cards, ALWAYS(units, sources, cards))

Cards read_cards() {
  Cards all;
  JsonReader json(kPublishedPeaks);
  read_value(json, all);
  json.finish();
  return all;
}

const Cards& known_cards() {
  static const Cards cards = read_cards();
  return cards;
}

// Returns operations or bytes per second, bytes, hertz, watts or a number of things.
double amount(const PublishedFigure& figure) { return figure.value * known_cards().units.at(figure.unit); }

std::string document_of(const PublishedFigure& figure) {
  const Source& source = known_cards().sources.at(figure.source);
  return source.title + ", " + source.where;
}

Provenance provenance_of(const PublishedFigure& figure, const std::string& remark) {
  const std::string document = document_of(figure);
  return {"published", remark.empty() ? document : document + "; " + remark, "", std::nullopt};
}

// The clock that a peak is for: on some cards the tensor cores' rates are given at a lower one than the highest. Both
// are boost clocks, which a card under load may not sustain.
std::string clock_of(const Card& card, const std::string& dtype, const PublishedFigure& peak) {
  const bool lower = peak.engine == "tensor cores" && dtype != "fp64";
  const auto& clock = lower && card.tensor_clock ? card.tensor_clock : card.boost_clock;
  return peak.engine + " at a boost clock" + (clock ? " of " + clock->text() : "");
}

// Returns what the figure rests on: a document, a measurement, or the measurement of another card.
std::string basis_of(const PublishedFigure& figure) {
  std::vector<std::string> by = figure.by;
  for (auto& name : by) std::ranges::replace(name, '_', ' ');
  if (figure.basis == "scaled") return "that of the " + figure.from + ", scaled by " + listed(by);
  return figure.basis == "measured" ? "measured on this card" : figure.note;
}

// "holds 25600 of its 51200 KiB, as counted on this card: ...".
std::string what_it_holds(const PublishedFigure& held, const PublishedFigure& nominal) {
  const std::string basis = held.basis == "measured" ? "as counted on this card" : basis_of(held);
  return "holds " + short_text(held.value, 15) + " of its " + nominal.text() + ", " + basis + ": " + document_of(held);
}

// Between what the cache was seen to hold and its nominal size some of it still has what is read: the bandwidth falls
// to DRAM's on the way.
BandwidthCurve fall_to_dram(const PublishedFigure& held, const PublishedFigure& nominal, double cache_rate,
                            double dram_rate) {
  const auto point = [](const PublishedFigure& size, double rate) {
    return BandwidthPoint{std::llround(amount(size)), rate, rate, rate, rate, rate, 0};
  };
  return {{point(held, cache_rate), point(nominal, dram_rate)},
          {"published", "the cache's bandwidth up to what it holds, DRAM's from its nominal size on", "", {}}};
}

CardFacts facts_of(const Card& card) {
  CardFacts facts;
  facts.compute_capability = card.compute_capability;
  if (const auto& processors = card.sms ? card.sms : card.cus)
    facts.multiprocessors = std::llround(amount(*processors));
  if (card.l2) facts.l2_bytes = std::llround(amount(*card.l2));
  if (card.memory) facts.memory_bytes = std::llround(amount(*card.memory));
  if (card.tdp) facts.tdp_watts = amount(*card.tdp);
  if (card.link) {
    facts.link = card.link->kind;
    facts.link_bytes_per_second = amount(*card.link) / 2;
  }
  facts.inline_ecc = card.inline_ecc;
  return facts;
}

Ceilings roofs_of(const Card& card) {
  Ceilings roofs;
  roofs.device = card.name;
  roofs.facts = facts_of(card);
  for (const auto& [dtype, peak] : card.peaks) {
    roofs.compute.push_back({dtype_from_name(dtype), amount(peak), provenance_of(peak, clock_of(card, dtype, peak))});
  }
  const auto add_cache = [&](const char* level, const auto& nominal, const auto& effective, const auto& bandwidth) {
    if (!nominal || !bandwidth) return;
    Provenance provenance = provenance_of(*bandwidth, basis_of(*bandwidth));
    if (effective) {
      provenance.method += "; " + what_it_holds(*effective, *nominal);
      roofs.curve = fall_to_dram(*effective, *nominal, amount(*bandwidth), amount(card.dram));
    }
    const auto bytes = std::llround(amount(effective ? *effective : *nominal));
    roofs.memory.push_back({level, amount(*bandwidth), bytes, std::move(provenance)});
  };
  add_cache("L2", card.l2, card.l2_effective, card.l2_bandwidth);
  add_cache("Infinity Cache", card.infinity_cache, std::optional<PublishedFigure>(), card.infinity_cache_bandwidth);
  roofs.memory.push_back({"DRAM", amount(card.dram), 0, provenance_of(card.dram, "")});
  return roofs;
}

// A name as people write it: case, blanks, dashes and the makers' names do not count.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words = {""};
  for (const char letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      words.back() += lower(letter);
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  std::erase_if(words, [](const auto& word) { return word.empty() || word == "nvidia" || word == "amd"; });
  return words;
}

std::string plain(std::string_view name) {
  std::string joined;
  for (const auto& word : words_of(name)) joined += word;
  return joined;
}

bool is_called(const Card& card, const std::string& wanted) {
  const auto same = [&](const std::string& name) { return plain(name) == wanted; };
  return same(card.name) || std::ranges::any_of(card.aliases, same) || std::ranges::any_of(card.device_names, same);
}

}  // namespace

std::optional<Ceilings> published_for_driver_name(std::string_view driver_name) {
  for (const Card& card : known_cards().cards) {
    if (std::ranges::find(card.device_names, driver_name) != card.device_names.end()) return roofs_of(card);
  }
  return std::nullopt;
}

Ceilings Ceilings::published(std::string_view name) {
  const auto& cards = known_cards().cards;
  const auto found =
      std::ranges::find_if(cards, [wanted = plain(name)](const auto& card) { return is_called(card, wanted); });
  if (found != cards.end()) return roofs_of(*found);
  std::vector<std::string> alike;
  std::vector<std::string> all;
  const auto parts = words_of(name);
  for (const Card& card : cards) {
    all.push_back(card.name);
    const auto words = words_of(card.name);
    const auto is_in_it = [&](const auto& part) { return std::ranges::find(words, part) != words.end(); };
    if (std::ranges::any_of(parts, is_in_it)) alike.push_back(card.name);
  }
  throw InvalidArgument("no published peaks of '" + std::string(name) + "' are known; there are those of " +
                        listed(alike.empty() ? all : alike));
}

}  // namespace roofprof
