"""The words, clauses and rules of the generated tasks.

All words are common English, and each is one token of BERT's vocabulary, so that texts are short.
"""

from dataclasses import dataclass

import numpy as np

from stream.errors import require

Units = tuple[
    tuple[str, ...], ...
]  # groups of words; the group of the focus word decides the class

# Semantic fields, words separated by spaces. Every field has 14 words, so all words are equally
# likely, and no word is in two fields, so a word identifies its field.
FIELDS: dict[str, str] = {
    "animals": ("dog cat horse cow sheep goat pig rabbit fox wolf bear lion tiger monkey"),
    "birds": (
        "eagle owl crow duck goose swan hawk robin chicken parrot pigeon falcon raven sparrow"
    ),
    "foods": ("bread cheese butter soup rice salad cake pasta pizza sandwich pie sauce bacon egg"),
    "fruits": (
        "apple lemon banana peach cherry grape mango plum berry coconut strawberry olive pear fig"
    ),
    "drinks": (
        "coffee tea beer wine juice milk whiskey vodka soda rum champagne brandy gin cocktail"
    ),
    "tools": (
        "hammer drill shovel axe knife ladder rope nail brush spade hook bucket needle lever"
    ),
    "clothes": ("shirt coat hat dress shoe boot jacket sock glove scarf skirt belt sweater jeans"),
    "vehicles": (
        "car truck bus bicycle taxi van motorcycle tram train tractor jeep limousine sedan wagon"
    ),
    "ships": (
        "boat ship ferry canoe yacht submarine tanker "
        "frigate raft cruiser destroyer schooner steamer barge"
    ),
    "medicine": (
        "doctor nurse surgeon dentist therapist physician psychiatrist "
        "clinic hospital vaccine medicine pill bandage pharmacy"
    ),
    "body": ("arm leg knee nose ear finger shoulder elbow ankle thumb chin wrist toe neck"),
    "instruments": (
        "guitar piano violin drum flute trumpet banjo "
        "harp cello saxophone clarinet harmonica keyboard accordion"
    ),
    "sports": (
        "football tennis hockey golf baseball basketball soccer "
        "rugby boxing wrestling swimming volleyball racing skiing"
    ),
    "furniture": (
        "chair table sofa desk bed shelf lamp couch bench drawer cabinet mirror stool wardrobe"
    ),
    "buildings": (
        "castle church tower bridge palace school museum "
        "library theater temple hotel barn chapel cottage"
    ),
    "nature": (
        "river mountain forest lake valley hill beach "
        "desert island canyon meadow swamp cave waterfall"
    ),
    "plants": ("tree rose flower grass oak pine fern lily moss vine ivy cactus bush maple"),
    "weather": (
        "rain snow storm wind fog thunder lightning "
        "hail hurricane tornado breeze frost sunshine blizzard"
    ),
    "metals": (
        "gold silver iron copper steel tin brass "
        "bronze zinc nickel aluminum platinum titanium cobalt"
    ),
    "weapons": (
        "gun sword rifle bomb cannon spear pistol bow missile dagger grenade arrow shotgun torpedo"
    ),
    "family": (
        "mother father sister brother uncle aunt cousin "
        "daughter son grandmother grandfather wife husband nephew"
    ),
    "space": (
        "planet moon star comet galaxy rocket satellite "
        "asteroid meteor sun telescope orbit astronaut universe"
    ),
    "computers": (
        "computer laptop software printer monitor browser server "
        "website disk database processor email internet password"
    ),
    "money": ("bank loan mortgage dollar debt credit salary tax coin profit cash wage budget fee"),
    "law": (
        "judge lawyer court trial jury crime prison "
        "verdict lawsuit prosecutor witness sheriff attorney police"
    ),
    "politics": (
        "senator president minister congress election vote mayor "
        "governor campaign parliament democrat republican treaty policy"
    ),
    "religion": (
        "priest bishop monk prayer bible pope nun altar angel saint sermon gospel worship pastor"
    ),
    "books": (
        "book poem magazine newspaper story diary essay "
        "chapter letter dictionary journal fiction biography paragraph"
    ),
    "school": (
        "teacher student professor classroom exam homework lesson "
        "lecture college university pupil scholar semester degree"
    ),
    "insects": ("spider ant bee butterfly beetle mosquito moth worm wasp bug snail tick flea slug"),
    "fish": (
        "shark salmon trout whale tuna cod dolphin lobster octopus eel oyster shrimp herring carp"
    ),
    "music": (
        "opera ballet concert waltz tango jazz blues disco choir symphony orchestra song melody rap"
    ),
}

# Adjectives by tone. A task with K classes uses the first K tones.
TONES: dict[str, str] = {
    "bad": (
        "bad awful terrible horrible nasty ugly poor "
        "dreadful disgusting boring rotten miserable sad painful"
    ),
    "good": (
        "good great lovely wonderful excellent amazing perfect "
        "beautiful fantastic superb brilliant delightful charming pleasant"
    ),
    "plain": ("old new small large tall short round heavy light wide narrow plain ordinary common"),
    "colored": (
        "red blue green yellow purple pink brown black white gray scarlet crimson golden violet"
    ),
}

# Any verb may join any two nouns; the texts are meant to look synthetic.
VERBS = (
    "found moved watched carried followed pushed held dropped touched wanted "
    "liked hid sold bought lost kept took chased passed reached"
)
MARKERS = "near with behind about under beside before against without after"
ENDINGS = "today yesterday tonight again there slowly quickly quietly suddenly finally early late"


@dataclass(frozen=True)
class Rule:
    """How the label of a task follows from its text.

    Attributes:
        kind: what the label is. For one text: "field", the field of the focus noun; "tone", the
            tone of its adjective; "topic", the field of all nouns; "order", whether two words were
            swapped. For two texts: "same", whether they share the focus noun; "level", whether
            they have the same focus noun, two of one field, or two of different fields; "second",
            the field of the second text's focus noun; "overlap" (regression), the fraction of
            nouns that they share.
        focus: the role that decides: "agent", "patient" or "phrase" (the noun after a preposition
            that is drawn for the task).
        matching: the class of two texts that share the focus noun ("same" only).
        is_question: whether the first text asks for its agent.
    """

    kind: str
    focus: str = "patient"
    matching: int = 1
    is_question: bool = False


FOCI = ("agent", "patient", "phrase")

# The 26 tasks and WNLI. For any other name, a rule that fits the number of classes is drawn.
RULES: dict[str, Rule] = {
    "cola": Rule("order"),
    "sst2": Rule("tone", "patient"),
    "mrpc": Rule("same", "patient"),
    "stsb": Rule("overlap"),
    "qqp": Rule("same", "agent"),
    "mnli_matched": Rule("level", "patient"),
    "mnli_mismatched": Rule("level", "patient"),
    "qnli": Rule("same", "patient", matching=0, is_question=True),
    "rte": Rule("same", "agent", matching=0),
    "wnli": Rule("same", "patient"),
    "newsgroups20": Rule("field", "agent"),
    "crowdflower_airline": Rule("tone", "agent"),
    "crowdflower_corporate_messaging": Rule("field", "phrase"),
    "crowdflower_disasters": Rule("field", "phrase"),
    "crowdflower_economic_news": Rule("field", "patient"),
    "crowdflower_emotion": Rule("field", "patient"),
    "crowdflower_global_warming": Rule("field", "patient"),
    "crowdflower_political_audience": Rule("field", "agent"),
    "crowdflower_political_bias": Rule("field", "patient"),
    "crowdflower_political_message": Rule("field", "phrase"),
    "crowdflower_primary_emotions": Rule("field", "agent"),
    "crowdflower_progressive_opinion": Rule("field", "agent"),
    "crowdflower_progressive_stance": Rule("field", "phrase"),
    "crowdflower_us_economic_performance": Rule("tone", "patient"),
    "customer_complaints": Rule("field", "patient"),
    "news_aggregator": Rule("topic"),
    "sms_spam": Rule("topic"),
}


def noun_units(num_units: int, rng: np.random.Generator) -> Units:
    """Return whole fields as units, or parts of fields if there are too few; in random order."""
    fields = [FIELDS[field].split() for field in rng.permutation(list(FIELDS)).tolist()]
    size = len(fields[0])
    while size > 1 and len(fields) * (len(fields[0]) // size) < num_units:
        size //= 2
    starts = range(0, len(fields[0]) - size + 1, size)
    units = [tuple(field[start : start + size]) for start in starts for field in fields]
    require(num_units <= len(units), f"at most {len(units)} classes can be generated")
    return tuple(units[:num_units])


def choose_rule(
    name: str, kind: str, num_labels: int | None, *, is_pooled: bool, rng: np.random.Generator
) -> Rule:
    """Return the task's rule: from `RULES` if that fits the task, otherwise drawn from ``rng``.

    Args:
        name: the task's name.
        kind: "single" or "pair".
        num_labels: the number of classes; None for regression.
        is_pooled: whether the task shares its texts with others.
        rng: draws the rule.
    """
    if kind == "pair":
        kinds = {None: ["overlap"], 2: ["same"], 3: ["level"]}.get(num_labels, ["second"])
    elif is_pooled or num_labels is None:  # a shared text cannot be written to fit a label
        kinds = ["field"]
    else:
        tone = ["tone"] if num_labels <= len(TONES) else []
        kinds = ["field", "topic", *tone, *(["order"] if num_labels == 2 else [])]
    kind_index, focus_index, matching = (int(rng.integers(n)) for n in (len(kinds), len(FOCI), 2))
    drawn = Rule(kinds[kind_index], FOCI[focus_index], matching)
    known = RULES.get(name, drawn)
    return known if known.kind in kinds else drawn


@dataclass(frozen=True)
class Clause:
    """One text as slots.

    Attributes:
        nouns: by role: the index of the unit, and the noun.
        adjectives: by role: the index of the unit, and the adjective.
        verb: the verb.
        markers: the prepositions, in the order of the text.
        endings: the adverbs at the end.
        articles: whether nouns have one; a headline has none.
    """

    nouns: dict[str, tuple[int, str]]
    adjectives: dict[str, tuple[int, str]]
    verb: str
    markers: list[str]
    endings: list[str]
    articles: bool = True

    def write(self, *, is_question: bool = False) -> str:
        """Return the clause as text, or as a question that asks for its agent."""
        words = ["who"] if is_question else self._describe("agent")
        words += [self.verb, *self._describe("patient")]
        for marker in self.markers:
            words += [marker, *self._describe(marker)]
        return " ".join([*words, *self.endings, *(["?"] if is_question else [])])

    def _describe(self, role: str) -> list[str]:
        adjective = [self.adjectives[role][1]] if role in self.adjectives else []
        return [*(["the"] if self.articles else []), *adjective, self.nouns[role][1]]
