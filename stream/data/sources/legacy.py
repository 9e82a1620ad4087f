"""Guess the encoding of text that is not UTF-8, and say what the next guess would give."""
# ruff: noqa: RUF001 - characters that look alike are what this is about

import codecs
import re
import string
from collections import Counter
from collections.abc import Iterator

from stream.data.table import Encoding

CHUNK_BYTES = 1 << 20
EXCERPT_BYTES = 1 << 16
WORD_SHOWN = 40

LEGACY = (  # the candidates, as chardet names them
    *("cp1252", "mac-roman", "cp850", "cp1250", "iso8859-2", "cp852", "mac-latin2", "cp1254"),
    *("cp1257", "cp1251", "koi8-r", "koi8-u", "mac-cyrillic", "iso8859-5", "cp866", "cp1253"),
    *("cp1255", "cp1256", "cp874", "cp1258"),
    *("gb18030", "big5hkscs", "cp932", "euc_jis_2004", "cp949"),
)
ALPHABETS = {  # letters beyond ASCII
    "French": "àâæçèéêëîïôœùûüÿ",
    "German": "äöüßé",
    "Spanish": "áéíñóúü",
    "Portuguese": "àáâãçéêíóôõúü",
    "Italian, Catalan": "àçèéìíîïòóùúü",
    "Swedish, Finnish": "åäöéü",
    "Danish, Norwegian": "æøåéöäü",
    "Dutch": "áèéëíïóöüú",
    "Icelandic": "áéíóúýþðæö",
    "Estonian": "äõöüšž",
    "Polish": "ąćęłńóśźż",
    "Czech": "áčďéěíňóřšťúůýž",
    "Slovak": "áäčďéíĺľňóôŕšťúýž",
    "Hungarian": "áéíóöőúüű",
    "Croatian, Slovene": "čćđšž",
    "Romanian": "ăâîșțşţ",
    "Turkish": "çğıi\u0307öşüâîû",
    "Lithuanian": "ąčęėįšųūž",
    "Latvian": "āčēģīķļņšūž",
    "English": "àáâãäåçèéêëìíîïñóôöøúûü",  # in words from the others
}
MAX_FOREIGN = 0.05  # share of the letters (or words) that another language may have lent
LATIN = re.compile(r"[a-zA-ZÀ-ɏḀ-ỿ]")
OTHER = re.compile(r"[^\x00-\x7fÀ-ɏḀ-ỿ\u2e80-\U0010ffff]")  # East Asian scripts mix with Latin
TYPOGRAPHIC = ("cp1252", "mac_roman")  # where one has punctuation, the other has letters
IN_PLACE = re.compile(  # a sign where writers of English put it
    r"(?<=\w)’|’(?=n’|\d\ds|em\b|tis\b|twas\b)|(?<!\w)[‘“](?=[\w’‘.])|(?<=[\w.,!?…’])”(?!\w)"
    r"|(?<=\d)[–—](?=\d)|(?<= )[–—](?=[ \n]|$)|(?<=\w\w)—(?=\w\w)|(?<=[\w.])…"
    r"|[£€](?= ?\d)|(?<=\d)(?: €|[°£€])|(?<!\w)•|[®™©]"
)
LENT = re.compile(IN_PLACE.pattern + "|[éêïñçöüôó½]")  # and letters in words of English
FEW = 3  # bytes beyond ASCII: too few to know a language by
WESTERN = re.compile(r"[à-ïñ-öø-üÿœßšž]|(?<!\w)[À-ÏÑ-ÖØ-ÜŠŽŒ](?=\w)|[«»¡¿ªº§\xa0]")


def guess_legacy(raw: bytes) -> Encoding:
    """Return the most likely encoding of bytes that are not UTF-8, and the next one.

    chardet judges the lines with such bytes by how often letters follow each other in a language;
    of its candidates, those whose letters belong together are tried first. English has little but
    punctuation beyond ASCII: if that stands in its places in one encoding (``bird’s``, not
    ``birdÕs``), it decides. The first candidate in which the whole file is valid is taken; one
    with the same text as cp1252 is called so.
    """
    import chardet  # not needed for UTF-8

    excerpt = excerpt_of(raw)
    found = chardet.detect_all(
        excerpt, ignore_threshold=True, compat_names=False, include_encodings=LEGACY
    )
    named = [result["encoding"] for result in found if result["encoding"] is not None]
    likely = [name.replace("-", "_") for name in named]
    likely.sort(key=lambda name: not _belong_together(excerpt.decode(name, "replace")))
    names = dict.fromkeys([*_by_punctuation(excerpt), *likely])
    valid = (name for name in names if undecodable(raw, name) is None)
    first = next(valid, "cp1252")
    text = excerpt.decode(first, "replace")
    western = excerpt.decode("cp1252", "replace")
    first = "cp1252" if western == text else first
    for name in valid:
        if (other := excerpt.decode(name)) != text:
            return Encoding(first, is_guess=True, next=name, example=_first_difference(text, other))
    return Encoding(first, is_guess=True)


def _belong_together(text: str) -> bool:
    """Return whether the letters of a text may be those of one language."""
    words = re.findall(r"[^\W\d_]*[^\x00-\x7f\W\d_][^\W\d_]*", text)
    odd = len(re.findall(r"(?<=[^\W\d_])[\x80-\xbf×÷‚„†-‰‹-⯿]+(?=[^\W\d_])", text))
    odd += sum(bool(LATIN.search(word) and OTHER.search(word)) for word in words)
    letters = Counter(c for word in words for c in word.casefold() if c > "\x7f" and LATIN.match(c))
    known = max(sum(letters[letter] for letter in alphabet) for alphabet in ALPHABETS.values())
    return odd <= MAX_FOREIGN * len(words) and known >= (1 - MAX_FOREIGN) * letters.total()


def _by_punctuation(excerpt: bytes) -> list[str]:
    """Return the encodings in order if, in one, most is punctuation in its place; else none."""
    total = len(re.findall(rb"[\x80-\xff]", excerpt))
    scores = {
        name: _num_in_place(excerpt.decode(name, "replace"), LENT if total <= FEW else IN_PLACE)
        for name in TYPOGRAPHIC
    }
    ranked = sorted(scores, key=lambda name: -scores[name])
    is_decided = 3 * scores[ranked[0]] >= total and len(set(scores.values())) > 1
    return ranked if is_decided else []


def _num_in_place(text: str, in_place: re.Pattern[str]) -> int:
    """Return how many signs stand in their places, less those that stand where none does.

    What was UTF-8 before it was taken for cp1252 (``donâ€™t``) counts as in its place.
    """
    left = re.sub(r"[^\x00-\x7f]{2,}", lambda run: "" if _is_damaged(run[0]) else run[0], text)
    rest = WESTERN.sub("", in_place.sub("", left))
    odd = len(re.findall(r"[^\x00-\x7f]", rest))
    return len(text) - len(left) + len(in_place.findall(left)) - 2 * odd


def _is_damaged(run: str) -> bool:
    """Return whether characters are the bytes of UTF-8, or of its start, as cp1252 has them."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(run.encode("cp1252"))
    except UnicodeError:
        return False
    return True


def _first_difference(text: str, other: str) -> tuple[str, str]:
    """Return the first word that two readings of the same bytes have differently."""
    words = zip(re.split(r"[\s,;|]+", text), re.split(r"[\s,;|]+", other), strict=False)
    one, two = next((pair for pair in words if pair[0] != pair[1]), ("", ""))
    return one.strip(string.punctuation)[:WORD_SHOWN], two.strip(string.punctuation)[:WORD_SHOWN]


def excerpt_of(raw: bytes) -> bytes:
    """Return about 64 kB of lines that contain bytes beyond ASCII."""
    pieces, size, position = [], 0, 0
    beyond = re.compile(rb"[\x80-\xff]")
    while size < EXCERPT_BYTES and (match := beyond.search(raw, position)):
        start = raw.rfind(b"\n", position, match.start()) + 1 or position
        end = raw.find(b"\n", match.start()) + 1 or len(raw)
        start = max(start, match.start() - 500)
        position = min(end, match.start() + 500)
        pieces.append(raw[start:position])
        size += position - start
    return b"".join(pieces)


def undecodable(raw: bytes, encoding: str) -> int | None:
    """Return the position of the first byte that is not valid in ``encoding``, or None.

    Needs constant memory.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    end = 0
    try:
        for chunk in chunks(raw):
            end += len(chunk)
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return end - len(error.object) + error.start
    except UnicodeError:  # UTF-16 or UTF-32 without the byte order mark that it needs
        return 0
    return None


def chunks(raw: bytes) -> Iterator[bytes]:
    """Yield ``raw`` in pieces of `CHUNK_BYTES`."""
    for start in range(0, len(raw), CHUNK_BYTES):
        yield raw[start : start + CHUNK_BYTES]
