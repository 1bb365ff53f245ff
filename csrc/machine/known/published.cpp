#include "machine/known/published.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/json/reader.h"
#include "core/phrases.h"

namespace roofprof {
namespace {

// A value with its unit and the key of its source.
struct PublishedFigure {
  std::string value;  // as it is written
  std::string unit;
  std::string source;
  std::string engine;           // of a peak: what computes it
  std::string basis;            // of a cache's bandwidth and of what it holds: "published", "measured" or "scaled"
  std::string note;             // what the source says it is
  std::string kind;             // of a link: "NVLink 4"
  std::string from;             // of a scaled figure: the card that was measured,
  std::vector<std::string> by;  // and the figures that it is scaled by

  double scale = 1;  // of the unit, which turns the value into operations or bytes per second, bytes, hertz or watts

  double amount() const {
    double number = 0;  // whatever the program's locale is
    std::from_chars(value.data(), value.data() + value.size(), number);
    return number * scale;
  }
};

// A cache that all of the chip shares: a level of the roofs where both are known.
struct SharedCache {
  std::string_view level;
  std::optional<PublishedFigure> capacity = {};
  std::optional<PublishedFigure> effective = {};  // of the capacity, what it was seen to hold
  std::optional<PublishedFigure> bandwidth = {};
};

struct Card {
  std::string name;
  std::vector<std::string> aliases;
  std::vector<std::string> device_names;
  std::vector<std::pair<std::string, PublishedFigure>> peaks;  // by dtype
  std::optional<PublishedFigure> boost_clock;
  std::optional<PublishedFigure> tensor_clock;
  SharedCache l2{"L2"};
  SharedCache infinity_cache{"Infinity Cache"};
  PublishedFigure dram;
  CardFacts facts;
};

using Units = std::map<std::string, double, std::less<>>;  // what one of a unit is

struct Cards {
  Units units;
  std::map<std::string, std::string, std::less<>> sources;  // key -> which document, and where in it
  std::vector<Card> cards;
};

std::vector<std::string> read_names(JsonReader& json) {
  std::vector<std::string> names;
  json.begin_array();
  while (json.next_item()) names.push_back(json.text());
  return names;
}

PublishedFigure read_figure(JsonReader& json, const Units& units) {
  PublishedFigure figure;
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "value") {
      figure.value = json.raw();
    } else if (*key == "unit") {
      figure.unit = json.text();
      figure.scale = units.at(figure.unit);
    } else if (*key == "source") {
      figure.source = json.text();
    } else if (*key == "engine") {
      figure.engine = json.text();
    } else if (*key == "basis") {
      figure.basis = json.text();
    } else if (*key == "note") {
      figure.note = json.text();
    } else if (*key == "kind") {
      figure.kind = json.text();
    } else if (*key == "from") {
      figure.from = json.text();
    } else if (*key == "by") {
      figure.by = read_names(json);
    } else {
      json.skip();
    }
  }
  return figure;
}

Card read_card(JsonReader& json, const Units& units) {
  Card card;
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "name") {
      card.name = json.text();
    } else if (*key == "aliases") {
      card.aliases = read_names(json);
    } else if (*key == "device_names") {
      card.device_names = read_names(json);
    } else if (*key == "peaks") {
      json.begin_object();
      while (const auto dtype = json.next_key()) {
        std::string name(*dtype);
        card.peaks.emplace_back(std::move(name), read_figure(json, units));
      }
    } else if (*key == "boost_clock") {
      card.boost_clock = read_figure(json, units);
    } else if (*key == "tensor_clock") {
      card.tensor_clock = read_figure(json, units);
    } else if (*key == "dram") {
      card.dram = read_figure(json, units);
    } else if (*key == "compute_capability") {
      card.facts.compute_capability = json.text();
    } else if (*key == "sms" || *key == "cus") {
      card.facts.multiprocessors = std::llround(read_figure(json, units).amount());
    } else if (*key == "l2") {
      card.l2.capacity = read_figure(json, units);
      card.facts.l2_bytes = std::llround(card.l2.capacity->amount());
    } else if (*key == "l2_effective") {
      card.l2.effective = read_figure(json, units);
    } else if (*key == "l2_bandwidth") {
      card.l2.bandwidth = read_figure(json, units);
    } else if (*key == "infinity_cache") {
      card.infinity_cache.capacity = read_figure(json, units);
    } else if (*key == "infinity_cache_bandwidth") {
      card.infinity_cache.bandwidth = read_figure(json, units);
    } else if (*key == "memory") {
      card.facts.memory_bytes = std::llround(read_figure(json, units).amount());
    } else if (*key == "inline_ecc") {
      card.facts.inline_ecc = json.boolean();
    } else if (*key == "tdp") {
      card.facts.tdp_watts = read_figure(json, units).amount();
    } else if (*key == "link") {
      const auto link = read_figure(json, units);
      card.facts.link = link.kind;
      card.facts.link_bytes_per_second = link.amount() / 2;  // both directions are published together
    } else {
      json.skip();
    }
  }
  return card;
}

std::string read_source(JsonReader& json) {
  std::string title;
  std::string where;
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "title") {
      title = json.text();
    } else if (*key == "where") {
      where = json.text();
    } else {
      json.skip();
    }
  }
  return title + ", " + where;
}

Cards read_cards() {
  Cards all;
  JsonReader json(kPublishedPeaks);
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "units") {  // stands before the cards
      json.begin_object();
      while (const auto unit = json.next_key()) {
        std::string name(*unit);
        all.units.emplace(std::move(name), json.number());
      }
    } else if (*key == "sources") {
      json.begin_object();
      while (const auto source = json.next_key()) {
        std::string name(*source);
        all.sources.emplace(std::move(name), read_source(json));
      }
    } else if (*key == "cards") {
      json.begin_array();
      while (json.next_item()) all.cards.push_back(read_card(json, all.units));
    } else {
      json.skip();
    }
  }
  json.finish();
  return all;
}

const Cards& known_cards() {
  static const Cards cards = read_cards();
  return cards;
}

Provenance provenance_of(const PublishedFigure& figure, const std::string& remark) {
  const std::string& document = known_cards().sources.at(figure.source);
  return {"published", remark.empty() ? document : document + "; " + remark, "", std::nullopt};
}

// The clock that a peak is for: on some cards the tensor cores' rates are given at a lower one than the highest. Both
// are boost clocks, which a card under load may not sustain.
std::string clock_of(const Card& card, const std::string& dtype, const PublishedFigure& peak) {
  const bool lower = peak.engine == "tensor cores" && dtype != "fp64";
  const auto& clock = lower && card.tensor_clock ? card.tensor_clock : card.boost_clock;
  return peak.engine + " at a boost clock" + (clock ? " of " + clock->value + " " + clock->unit : "");
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
  return "holds " + held.value + " of its " + nominal.value + " " + held.unit + ", " + basis + ": " +
         known_cards().sources.at(held.source);
}

// Between what the cache was seen to hold and its nominal size some of it still has what is read: the bandwidth falls
// to DRAM's on the way.
BandwidthCurve fall_to_dram(const PublishedFigure& held, const PublishedFigure& nominal, double cache_rate,
                            double dram_rate) {
  const auto point = [](const PublishedFigure& size, double rate) {
    return BandwidthPoint{std::llround(size.amount()), rate, rate, rate, rate, rate, 0};
  };
  return {{point(held, cache_rate), point(nominal, dram_rate)},
          {"published", "the cache's bandwidth up to what it holds, DRAM's from its nominal size on", "", {}}};
}

Ceilings roofs_of(const Card& card) {
  Ceilings roofs;
  roofs.device = card.name;
  roofs.facts = card.facts;
  for (const auto& [dtype, peak] : card.peaks) {
    roofs.compute.push_back({dtype_from_name(dtype), peak.amount(), provenance_of(peak, clock_of(card, dtype, peak))});
  }
  for (const SharedCache* cache : {&card.l2, &card.infinity_cache}) {
    if (!cache->capacity || !cache->bandwidth) continue;
    const auto& held = cache->effective ? cache->effective : cache->capacity;
    Provenance provenance = provenance_of(*cache->bandwidth, basis_of(*cache->bandwidth));
    if (cache->effective) {
      provenance.method += "; " + what_it_holds(*cache->effective, *cache->capacity);
      roofs.curve = fall_to_dram(*cache->effective, *cache->capacity, cache->bandwidth->amount(), card.dram.amount());
    }
    roofs.memory.push_back(
        {std::string(cache->level), cache->bandwidth->amount(), std::llround(held->amount()), std::move(provenance)});
  }
  roofs.memory.push_back({"DRAM", card.dram.amount(), 0, provenance_of(card.dram, "")});
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
  throw std::invalid_argument("no published peaks of '" + std::string(name) + "' are known; there are those of " +
                              listed(alike.empty() ? all : alike));
}

}  // namespace roofprof
