
REFERENCE, TAG = re.compile("&(?:#([0-9]+)|#[xX]([0-9A-Fa-f]+)|([A-Za-z][A-Za-z0-9]*));"), re.compile("<[A-Za-z/!][^<>]*>")

def reference(found: re.Match):
    decimal, hexadecimal, name = found.groups()
    if name:
        return html.entities.html5.get(name + ";", found[0])
    number = int((decimal or hexadecimal).lstrip("0")[:8] or "0", 10 if decimal else 16)
    if 0x80 <= number <= 0x9F:
        return bytes([number]).decode("cp1252", "ignore") or chr(number)
    return chr(number) if 0 < number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else "\ufffd"

def clean(text: str, has_symbols: bool):
    """The text as `mapper` cleans it; a cleaned text is unchanged. `has_symbols` stands for `mapper --punctuation`. A character
    that the Unicode of this Python does not have separates words."""
    text = TAG.sub(" ", REFERENCE.sub(reference, text)).replace("\u2019", "'").lower()
    letters, symbols, kept, in_word = "LN" if has_symbols else "L", "PS" if has_symbols else "", [], False
    for character in text:
        kind = unicodedata.category(character)[0]
        in_word = kind in letters or kind == "M" and in_word
        kept.append(character if in_word or character == "'" else f" {character} " if kind in symbols else " ")
    return " ".join(filter(None, (word.strip("'") for word in "".join(kept).split(" "))))

def score(text: str):
    return scores([text])[0]

if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8", errors=invalid)
    for line in sys.stdin:
        found = score(line.removeprefix("\ufeff").removesuffix("\n").removesuffix("\r"))
        print(*(found if isinstance(found, list) else [found]), flush=True)
