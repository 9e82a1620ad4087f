"""Which columns `inspect` takes, of small files as people have them: one row of a table each.

A file is its header and the pattern of its rows. `<t>` is a sentence, `<s>` a short text, `<i>` the
number of the row, `<f>` a fraction, and `<a|b>` takes the values in turn, each row another one.
"""

import hashlib
import re
from pathlib import Path

import pytest

from stream.config.data import FilesData
from stream.data.inspecting.inspection import Wanted, inspect_file
from stream.data.inspecting.report import report
from stream.data.inspecting.shapes import TEXT, shape_of
from stream.data.loading import load_task
from stream.errors import UserError

ROWS = 40
WORDS = "the lamp is on a warm dull day we never saw such rain near old doors and quiet birds"
WORDS = WORDS.split()


def _words(row: int, number: int) -> str:
    """Return words that differ from row to row."""
    digest = hashlib.sha256(f"{row} {number}".encode()).digest()
    return " ".join(WORDS[byte % len(WORDS)] for byte in digest[:number])


MADE = {
    "t": lambda i: _words(i, 12),
    "u": lambda i: _words(i + 1000, 11),
    "s": lambda i: _words(i, 5),
    "word": lambda i: "".join(_words(i, 3).split()),
    "i": str,
    "f": lambda i: f"{(i * 7) % ROWS / 8:.3f}",
    "n": lambda i: str((i * 37) % 101),
    "url": lambda i: f"https://example.org/a/very/long/way/to/the/page/{i}",
    "uuid": lambda i: hashlib.md5(str(i).encode(), usedforsecurity=False).hexdigest(),
    "date": lambda i: f"2024-{i % 12 + 1:02}-{i % 28 + 1:02} 10:{i % 60:02}:00",
    "longdate": lambda i: f"Mon Apr {i % 28 + 1:02} 22:19:{i % 60:02} PDT 2009",
    "html": lambda i: f"<div class='post'><p>{_words(i, 14)}</p><br/></div>",
    "tree": lambda i: f"(ROOT (S (NP {_words(i, 3)}) (VP {_words(i, 6)})))",
    "handle": lambda i: f"@{_words(i, 1)}_{i}",
    "mail": lambda i: f"{_words(i, 1)}{i}@example.org",
    "rare": lambda i: "seen" if i == 3 else "",
}  # fmt: skip


def filled(pattern: str, row: int) -> str:
    """Return one row of a pattern."""

    def value(found: re.Match[str]) -> str:
        choices = found[1].split("|")
        return MADE[found[1]](row) if found[1] in MADE else choices[row % len(choices)]

    return re.sub(r"<([^<>]*)>", value, pattern)


def written(tmp_path: Path, header: str, pattern: str, rows: int = ROWS) -> Path:
    """Write a file: JSON Lines if the pattern is an object, else tab-separated or CSV."""
    suffix = "jsonl" if pattern.startswith("{") else "tsv" if "\t" in pattern else "csv"
    path = tmp_path / f"mine.{suffix}"
    lines = [header] * bool(header) + [filled(pattern, row) for row in range(rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


CHOSEN = [
    # by name before shape
    ("url,title,label", "<url>,<s>,<a|b>", "title", "label 2"),
    ("id,text,label", "<uuid>,<s>,<a|b|c>", "text", "label 3"),
    ("html,text,label", "<html>,<s>,<a|b>", "text", "label 2"),
    ("text,html,label", "<s>,<rare>,<a|b>", "text", "label 2"),
    ("parse,sentence,label", "<tree>,<s>,<a|b>", "sentence", "label 2"),
    ("tweet,opinion", "<t>,<for it is a good plan we all want|against>", "tweet", "opinion 2"),
    ("opinion,tweet", "<for it is a good plan that we all want|against>,<s>", "tweet", "opinion 2"),
    ("Product,Tags,Consumer complaint narrative", "<Loan|Card>,<rare>,<t>",
     "Consumer complaint narrative", "Product 2"),
    ("_golden,emotion,emotion:confidence,content", "<0|1>,<joy|fear|love>,<f>,<t>",
     "content", "emotion 3"),
    ("text,label_date,level_1,level_2", "<t>,<2020-01-02|2020-01-03>,<a|b|c>,<d|e|f|g>",
     "text", "level_1 3"),
    ("sentence,label1,label2,gold_label", "<t>,<a|b>,<b|a>,<a|b|c>", "sentence", "gold_label 3"),
    ("qid,question_text,target", "<uuid>,<t>,<0|1>", "question_text", "target 2"),
    ("tweet_id,airline_sentiment,airline_sentiment_confidence,negativereason,airline,name,text,"
     "tweet_created,user_timezone",
     "5703<i>,<neg|pos|neutral>,<f>,<Late|>,<X|Y>,<handle>,<t>,<longdate>,<Lima|Quito>",
     "text", "airline_sentiment 3"),
    (",count,hate_speech,offensive_language,neither,class,tweet",
     "<i>,3,<0|1>,<1|0>,<0|1>,<0|1|2>,<t>", "tweet", "class 3"),
    ("Class Index,Title,Description", "<1|2|3|4>,<s>,<t>", "Description", "Class Index 4"),
    ("id,label,clean_text,text,label_num", "<i>,<ham|spam>,<t>,<s>,<0|1>", "text", "label 2"),
    ("text,label,label_text", "<t>,<0|1>,<no|yes>", "text", "label_text 2"),
    ("ID,Target,Tweet,Stance", "<i>,<A|B|C>,<t>,<FAVOR|AGAINST>", "Tweet", "Stance 2"),
    ("id,tweet,subtask_a,subtask_b", "<i>,<t>,<OFF|NOT>,<UNT|TIN|NULL>", "tweet", "subtask_a 2"),
    ("label,comment,author,subreddit,score,ups,date", "<0|1>,<t>,<handle>,<a|b|c>,<n>,<n>,<date>",
     "comment", "label 2"),
    ("PhraseId,SentenceId,Phrase,Sentiment", "<i>,<i>,<t>,<0|1|2|3|4>", "Phrase", "Sentiment 5"),
    ("catégorie,texte", "<sport|monde>,<t>", "texte", "catégorie 2"),
    ("reviewtext,mail,spamlabel", "<s>,<mail>,<0|1>", "reviewtext", "spamlabel 2"),
    ("Unnamed: 0,Review Text,Rating,Recommended IND,Class Name",
     "<i>,<t>,<1|2|3|4|5>,<0|1>,<A|B|C|D|E|F>", "Review Text", "Rating 5"),
    ("user_id,user_review,is_spam", "<i>,<t>,<True|False>", "user_review", "is_spam 2"),
    ("Sr No.,Utterance,Speaker,Emotion", "<i>,<t>,<Ann|Ben|Cy>,<joy|fear|anger|love>",
     "Utterance", "Emotion 4"),
    # by shape alone
    ("v1,v2,,", "<ham|spam>,<t>,<rare>,<rare>", "v2", "v1 2"),
    ("", "<gj04|bc01|cj99|ks08>\t<1|0>\t<*|>\t<t>", "column_4", "column_2 2"),
    ("", '"<4|0>","14678<i>","<longdate>","NO_QUERY","<handle>","<t>"', "column_6", "column_1 2"),
    ("headline,clickbait", "<t>,<0|1>", "headline", "clickbait 2"),
    ("Text,Language", "<t>,<Dutch|Greek|Hindi>", "Text", "Language 3"),
    ("when,what,votes,mood", "<longdate>,<t>,<0|1|2>,<calm|glad|sad|odd|low>", "what", "mood 5"),
    ('name,origin', "<word>,<Dutch|Greek>", "name", "origin 2"),
    # pairs
    ("index,sentence1,sentence2,label", "<i>,<t>,<u>,<0|1>", "sentence1 + sentence2", "label 2"),
    ("hypothesis,premise,gold_label", "<s>,<t>,<yes|no|->", "premise + hypothesis", "gold_label 3"),
    ("label,question,answer", "<0|1>,<t>,<u>", "question + answer", "label 2"),
    ("text_a,text_b,label", "<t>,<u>,<x|y>", "text_a + text_b", "label 2"),
    ("text,text2,same", "<t>,<u>,<0|1>", "text + text2", "same 2"),
    ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "<1|0>\t<n>\t<n>\t<t>\t<u>",
     "#1 String + #2 String", "Quality 2"),
    ("gold_label,sentence1_parse,sentence2_parse,sentence1,sentence2,label1,label2",
     "<a|b>,<tree>,<tree>,<s>,<u>,<a|b>,<b|a>", "sentence1 + sentence2", "gold_label 2"),
    ("id,qid1,qid2,question1,question2,is_duplicate", "<i>,<n>,<n>,<t>,<u>,<0|1>",
     "question1 + question2", "is_duplicate 2"),
    ("claim,evidence,verdict", "<s>,<t>,<true|false|unclear>", "claim + evidence", "verdict 3"),
    ("query,product_title,relevance", "<red lamp|old door>,<t>,<good|bad>",
     "query + product_title", "relevance 2"),
    ("sentence_A,sentence_B,relatedness_score", "<t>,<u>,<f>", "sentence_A + sentence_B",
     "relatedness_score 0..5"),
    ("s1,s2,similarity", "<t>,<u>,<f>", "s1 + s2", "similarity 0..5"),
    ("answer_a,answer_b,answer_c,question,label", "<s>,<s>,<s>,<t>,<a|b|c>", "question", "label 3"),
    ("id,premise,conclusion,stance", "<i>,<t>,<u>,<for|against>", "premise + conclusion",
     "stance 2"),
    ("source,target,label", "<t>,<u>,<ok|bad>", "source + target", "label 2"),
    # more texts
    ("premise,choice1,choice2,question,idx,label", "<t>,<s>,<s>,<cause|effect>,<i>,<0|1>",
     "premise + choice1 + choice2 + question", "label 2"),
    ("label,sentence2,sentence1,word", "<True|False>,<t>,<u>,<bank|door>",
     "word + sentence1 + sentence2", "label 2"),
    ("answer,question,paragraph,label", "<s>,<t>,<u>,<0|1>", "paragraph + question + answer",
     "label 2"),
    ("word,sentence,label", "<bank|door>,<t>,<a|b>", "sentence", "label 2"),
    # numbers
    ("review_id,user_id,stars,useful,funny,text,date",
     "<uuid>,<uuid>,<1|2|3>,<0|1|2>,<0|1>,<t>,<date>", "text", "stars 3"),
    ("review,sentiment,sentiment_score", "<t>,<pos|neg>,<f>", "review", "sentiment 2"),
    ("post,subreddit,is_sad,upvotes", "<t>,<a|b|c>,<0|1>,<n>", "post", "is_sad 2"),
    ("text,score", "<t>,<f>", "text", "score 0..5"),
    ("text,score", "<t>,<n>", "text", "score 0..100"),
    ("review,rating", "<t>,<1|2|3|4|5>", "review", "rating 5"),
    ("excerpt,ease", "<t>,<f>", "excerpt", "ease 0..5"),
    ("essay_id,essay,rater1,domain1_score", "<i>,<t>,<1|2>,<2|3|4>", "essay", "domain1_score 3"),
    # JSON
    ("", '{"text": "<t>", "label": "<a|b>", "note": null}', "text", "label 2"),
    ("", '{"url": "<url>", "headline": "<s>", "is_sarcastic": <0|1>, "tags": ["a", "<b|c>"]}',
     "headline", "is_sarcastic 2"),
    ("", '{"text": "<t>", "accept": "<a|b|c>", "answer": "<accept|reject>"}', "text", "accept 3"),
    ("", '{"text": "<t>", "label": "x", "meta.score": <f>, "answer": "<accept|reject>"}',
     "text", "answer 2"),
    ("", '{"data.text": "<t>", "annotations.id": <i>, "annotations.completed_by": <1|2>,'
     ' "annotations.result.value.choices": "<a|b|c>", "annotations.result.type": "choices",'
     ' "annotations.lead_time": <f>, "created_at": "2024-01-01T10:00:00Z"}',
     "data.text", "annotations.result.value.choices 3"),
    ("", '{"id_str": "<i>", "text": "<s>", "user.description": "<t>", "lang": "<en|fr>",'
     ' "stance": "<a|b|c>"}', "text", "stance 3"),
    ("", '{"question": "<s>", "passage": "<t>", "answer": <true|false>}', "question + passage",
     "answer 2"),
]  # fmt: skip
REFUSED = [
    ("id,split,V,A,D,text", "<i>,<train|dev>,<f>,<f>,<f>,<t>", "'V', 'A', 'D' could be scores"),
    ("date,text", "<date>,<t>", "no column looks like a label; name one with --label"),
    ("id,comment_text,toxic,obscene,threat", "<i>,<t>,<0|1>,<1|0|0>,<0|0|1>",
     "3 columns of 0 and 1 ('toxic', 'obscene', 'threat') are several labels a row"),
    ("text,is_joy,is_fear,is_love,is_calm", "<t>,<0|1>,<1|0>,<0|1>,<0|0|1>",
     "4 columns of 0 and 1 ('is_joy', 'is_fear', 'is_love', 'is_calm') are several labels"),
    ("text,labels", "<t>,<a;b|a|b|c|b;c>", "'labels' holds several labels per row, joined by ';'"),
    ("", '<t>\t<27|2,6|2|6|27,2>\t<uuid>', "'column_2' holds several labels per row"),
    ("text,tags", "<t>,\"<['a', 'b']|['b']|['a']>\"", "'tags' holds lists or objects"),
    ("", '{"text": "<t>", "labels": ["a", "<b|c>"]}', "'labels' holds lists or objects"),
    ("text,label", "<t>,a", "'label' has 1 different value, and a task needs two labels"),
    ("text,label", "<t>,", "'label' has 0 different values"),
    ("url,label", "<url>,<a|b>", "no column looks like text; 'url' holds addresses"),
    ("text,label", "<uuid>,<a|b>", "no column looks like text; 'text' holds identifiers"),
    ("text,label", "the lamp is on,<a|b>", "'text' has one value in all rows"),
    ("text,label", "<rare>,<a|b>", "no column looks like text; 'text' is"),
    ("body,label", "<html>,<a|b>", "'body' holds HTML"),
    ("tree,label", "<tree>,<a|b>", "'tree' holds parse trees"),
    ("date,label", "<date>,<a|b>", "'date' holds dates"),
    ("full_text,cohesion,syntax", "<t>,<f>,<f>", "'cohesion', 'syntax' could be scores"),
    ("text,score", '<t>,"<0,5|1,5|2,0>"', "'score' holds numbers with decimal commas"),
    ("text,label", "<t>,<uuid>", "'label' has 40 different values, too many for classes"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "pattern", "texts", "label"), CHOSEN)
def test_what_is_chosen(tmp_path: Path, header: str, pattern: str, texts: str, label: str) -> None:
    found = inspect_file(written(tmp_path, header, pattern), "mine", Wanted())
    column, _, what = label.rpartition(" ")
    assert (" + ".join(found.text.names), found.label.names) == (texts, [column])
    kinds = {1: "single", 2: "pair"}
    assert found.spec.kind == kinds.get(len(texts.split(" + ")), "multi")
    scores = found.spec.score_range
    assert what == ("{:g}..{:g}".format(*scores) if scores else str(len(found.spec.labels or ())))
    loaded = load_task(FilesData(root="."), "mine", found.spec, tmp_path)
    assert sum(map(len, loaded.rows.values())) == sum(map(len, found.loaded.rows.values())) > 0
    assert max(map(len, report(found))) < 250


@pytest.mark.parametrize(("header", "pattern", "message"), REFUSED)
def test_what_is_refused_is_one_line(
    tmp_path: Path, header: str, pattern: str, message: str
) -> None:
    path = written(tmp_path, header, pattern)
    with pytest.raises(UserError) as caught:
        inspect_file(path, "mine", Wanted())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "unit", ["1", "a1", "/a", "<a>", "(", "[a", "{:", "a@", "a.b", "1-", "mar t "]
)
def test_a_long_value_has_a_shape_at_once(unit: str) -> None:
    """Matching takes linear time: quadratic would take minutes for this length."""
    assert shape_of([unit * 50_000 + "\u00e9 x"]) in (TEXT, "HTML", "identifiers")
