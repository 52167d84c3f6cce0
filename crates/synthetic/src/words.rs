//! Words and sentences of the synthetic reviews, by topic and sentiment.
//!
//! `{name}` is a slot: a word of the list with that name ([`list`]), or a word about the product of the
//! review: `{thing}`, `{aspect}`, `{use}`, `{brand}`, `{model}`, `{number}`.

/// A kind of product: its names, the aspects that reviews judge, its uses.
pub(crate) struct Category {
    pub(crate) things: &'static [&'static str],
    pub(crate) aspects: &'static [&'static str],
    pub(crate) uses: &'static [&'static str],
}

/// In descending order of frequency.
#[rustfmt::skip]
pub(crate) const CATEGORIES: [Category; 12] = [
    Category {
        things: &["headphones", "speaker", "earbuds", "headset", "radio", "microphone", "soundbar", "turntable", "amplifier", "receiver"],
        aspects: &["sound", "battery", "bass", "fit", "volume", "cable", "noise cancelling", "connection", "treble", "ear cushions", "charging case"],
        uses: &["commuting", "the gym", "podcasts", "long flights", "video calls", "late night listening", "jogging"],
    },
    Category {
        things: &["blender", "kettle", "frying pan", "toaster", "knife", "coffee maker", "rice cooker", "mixer", "grater", "cutting board", "oven mitt"],
        aspects: &["blade", "handle", "lid", "coating", "motor", "cord", "timer", "non-stick surface", "spout", "thermostat", "noise"],
        uses: &["smoothies", "pancakes", "Sunday breakfast", "camping", "small kitchens", "baking bread", "family dinners"],
    },
    Category {
        things: &["novel", "cookbook", "thriller", "biography", "paperback", "audiobook", "guidebook", "romance", "textbook", "memoir"],
        aspects: &["plot", "ending", "writing", "pacing", "dialogue", "print", "cover", "characters' depth", "first chapter", "narration", "translation"],
        uses: &["the beach", "book club", "bedtime", "a rainy weekend", "the train", "students", "beginners"],
    },
    Category {
        things: &["phone case", "charger", "tablet", "keyboard", "mouse", "monitor", "laptop stand", "router", "webcam", "hard drive", "power bank"],
        aspects: &["screen", "battery life", "setup", "software", "signal", "build quality", "touchpad", "manual", "speed", "resolution", "USB port"],
        uses: &["working from home", "travel", "gaming", "the office", "school", "photo editing", "streaming"],
    },
    Category {
        things: &["jacket", "sneakers", "boots", "dress", "sweater", "jeans", "backpack", "socks", "gloves", "raincoat", "hoodie"],
        aspects: &["size", "stitching", "fabric", "zipper", "sole", "color", "lining", "collar", "fit", "pockets' size", "elastic"],
        uses: &["hiking", "winter", "work", "weddings", "rainy days", "everyday wear", "dancing"],
    },
    Category {
        things: &["puzzle", "doll", "train set", "board game", "kite", "stuffed bear", "building blocks", "scooter", "play tent", "card game"],
        aspects: &["paint", "instructions", "box", "plastic", "artwork", "rule book", "replay value", "battery compartment", "size", "safety"],
        uses: &["toddlers", "game night", "birthday parties", "grandchildren", "rainy afternoons", "the classroom"],
    },
    Category {
        things: &["drill", "screwdriver set", "flashlight", "ladder", "wrench", "tape measure", "saw", "sander", "tool box", "work light"],
        aspects: &["grip", "torque", "chuck", "battery", "brightness", "weight", "magnet", "latch", "switch", "finish"],
        uses: &["home repairs", "the garage", "hanging shelves", "woodworking", "the car", "tight corners"],
    },
    Category {
        things: &["dog bed", "leash", "cat tree", "litter box", "chew toy", "pet carrier", "aquarium filter", "bird feeder", "collar", "dog food"],
        aspects: &["smell", "stuffing", "buckle", "taste", "cover", "texture", "pump", "scent", "stability", "washability"],
        uses: &["our puppy", "two cats", "big dogs", "picky eaters", "vet visits", "walks at night"],
    },
    Category {
        things: &["hose", "lawn mower", "planter", "patio chair", "grill", "rake", "sprinkler", "greenhouse", "solar lights", "umbrella"],
        aspects: &["nozzle", "rust protection", "wheels' grip", "assembly", "fabric", "light", "frame", "burner", "pressure", "drainage"],
        uses: &["the balcony", "summer evenings", "raised beds", "barbecues", "a small lawn", "tomatoes"],
    },
    Category {
        things: &["shampoo", "lipstick", "face cream", "hair dryer", "perfume", "razor", "sunscreen", "nail polish", "toothbrush", "lotion"],
        aspects: &["scent", "texture", "color", "packaging", "lather", "shade", "staying power", "bottle", "feel", "pump"],
        uses: &["dry skin", "sensitive skin", "curly hair", "travel", "summer", "everyday use", "date nights"],
    },
    Category {
        things: &["coffee", "green tea", "chocolate", "granola", "olive oil", "hot sauce", "protein bar", "pasta", "honey", "popcorn", "crackers"],
        aspects: &["taste", "aroma", "freshness", "aftertaste", "packaging", "sweetness", "texture", "crunch", "flavor", "expiration date"],
        uses: &["breakfast", "lunch boxes", "guests", "a quick snack", "cold evenings", "the pantry", "hikes"],
    },
    Category {
        things: &["video game", "controller", "movie", "DVD set", "concert album", "documentary", "racing wheel", "soundtrack", "console", "expansion pack"],
        aspects: &["story", "graphics", "controls' layout", "soundtrack", "acting", "picture quality", "difficulty", "campaign", "camera", "editing"],
        uses: &["weekends", "family nights", "long winters", "fans of the series", "two players", "a party"],
    },
];

/// Sentences by sentiment: -2, -1, 0, 1, 2.
#[rustfmt::skip]
pub(crate) const SENTENCES: [&[&str]; 5] = [
    &[
        "do not buy this {thing}.", "don't waste your money.", "it never {works}.", "the {aspect} is {very} {awful}.",
        "{awful} {aspect}, {awful} {aspect}.", "it broke after {time}.", "I sent it back after {time}.", "total {junk}.",
        "worst {thing} I have ever {owned}.", "much worse than the {brand} I had before.", "I want my money back.",
        "customer service never answered.", "I wish I could give zero stars.", "stay away from {brand}.",
        "the {aspect} failed after {time} and the seller refused a refund.", "nothing about the {aspect} works.",
        "my {relative} hates it and so do I.", "I regret buying it.", "it smelled {awful} and went straight into the trash.",
        "the {aspect} was {awful} from the first day.", "not worth a single cent.", "the {aspect} looked {good}, but it was {awful} after {time}.",
        "the picture is a lie, the {aspect} is {awful}.", "it arrived damaged and nobody cares.", "what a {awful} {thing}!",
        "I have never been so disappointed.", "the {thing} stopped working after {time}.", "this is a scam.", "save your money.",
    ],
    &[
        "the {aspect} is {rather} {poor}.", "not as {good} as I had hoped.", "not {great}.", "the {aspect} isn't {good} enough for {use}.",
        "the {aspect} is {good}, but the {aspect} is {poor}.", "it looks {good} but feels {poor}.", "I wouldn't buy it again.",
        "it's worse than my old {brand}.", "it isn't worth the price.", "the {aspect} wears out quickly.", "I had to {fix} the {aspect} myself.",
        "disappointed by the {aspect}.", "the {aspect} is too {poor} for {use}.", "I expected a {good} {thing} and got a {poor} one.",
        "my {relative} doesn't like the {aspect}.", "there are better ones for less.", "the {aspect} started to fail after {time}.",
        "hardly {good} for {use}.", "the {aspect} keeps slipping.", "a {poor} {aspect} spoils it.", "I would not call the {aspect} {good}.",
        "the {brand} is less {poor} than this one.", "returned it, the {aspect} was {poor}.",
    ],
    &[
        "it is {fair}.", "the {aspect} is {good}, the {aspect} is {poor}.", "neither {great} nor {awful}.", "you get what you pay for.",
        "{fair} {thing}, nothing more.", "some days it works, some days it doesn't.", "the {aspect} is {fair} for {use}.",
        "I have mixed feelings about the {aspect}.", "the {aspect} is {fair} at best.", "three stars for the {aspect}.",
        "about the same as the {brand}.", "it does what it does.", "not {good}, not {poor}.", "my {relative} likes it, I don't.",
        "the {aspect} takes getting used to.", "better than nothing.",
    ],
    &[
        "the {aspect} is {rather} {good}.", "it does the job.", "not {poor} at all.", "not a bad {thing} for the money.",
        "I have no complaints about the {aspect}.", "it {works} as described.", "{good} for {use}.", "happy with it so far.",
        "the {aspect} could be better, but overall it is {good}.", "the {aspect} is a little {poor}, but the {aspect} is {good}.",
        "slightly better than my old {brand}.", "nothing {poor} about the {aspect}.", "I like the {aspect}.", "a {good} {thing} at a fair price.",
        "my {relative} likes the {aspect}.", "the {aspect} is {good} and the {aspect} is {good} too.", "I would buy it again.",
        "it hasn't failed {time} in.", "easy to {fix} and easy to clean.", "the {aspect} isn't {poor}, as some reviews say.",
        "it feels more {good} than the {brand}.", "would recommend it for {use}.", "the delivery was quick and the {aspect} is {good}.",
    ],
    &[
        "I {love} this {thing}!", "the {aspect} is {very} {great}.", "{great} {aspect} and {great} {aspect}!",
        "best {thing} I have ever {owned}.", "I could not be happier with the {aspect}.", "never had a single problem with it.",
        "my {relative} loves it and so do I.", "better than any {brand} I have tried.", "I would buy it again in a heartbeat.",
        "worth every penny.", "it {works} perfectly and has not failed once after {time}.", "you won't regret it.", "five stars from me.",
        "I can't say enough about the {great} {aspect}.", "highly recommended for {use}.", "the {aspect} is a joy.",
        "it exceeded my expectations.", "far better than the {brand} it replaced.", "what a {great} {thing}!", "I use it every day and {love} it.",
        "the {aspect} looked {poor} in the pictures, but it is {great}.", "everyone who sees it wants one.", "thank you {brand}!",
        "simply {great}.", "don't think twice, buy it.", "{great} for {use}.", "it makes me smile every time.",
    ],
];

/// Whole reviews of one to three words, by sentiment.
#[rustfmt::skip]
pub(crate) const EXCLAMATIONS: [&[&str]; 5] = [
    &["Junk", "Garbage!", "Terrible", "Don't buy", "Broken", "Waste of money", "Awful", "Never again", "Useless", "Horrible"],
    &["Disappointed", "Not great", "Meh", "Too small", "Poor quality", "Not as described", "Flimsy", "Overpriced"],
    &["OK", "Average", "It's okay", "So so", "As described", "Fine", "Nothing special", "Ok I guess"],
    &["Good", "Nice", "Works fine", "Good product", "Works well", "As expected", "Not bad", "Good value", "Nice fit", "Like it"],
    &["Great", "Perfect!", "Love it", "Excellent", "Awesome", "Great product", "Love it!!", "Five Stars", "Amazing", "Works great", "Best ever"],
];

/// Sentences in other languages, by sentiment.
#[rustfmt::skip]
pub(crate) const FOREIGN: [&[&str]; 5] = [
    &["¡Pésimo! No lo compren.", "Ужасно, деньги на ветер.", "すぐに壊れました。", "Très mauvaise qualité, à éviter.", "ΑΠΑΡΑΔΕΚΤΟΣ ήχος, μην το πάρετε."],
    &["Leider größer als beschrieben.", "Не очень, ожидал большего.", "Un peu déçu, hélas.", "思ったより小さいです。", "Μέτριος ήχος, κρίμα."],
    &["Geht so, für den Preis.", "Нормально.", "Más o menos.", "普通です。", "Έτσι κι έτσι."],
    &["Está muy bien, señor.", "Неплохо, рекомендую.", "Schön und praktisch.", "良い商品です。", "Καλός, όπως τον περίμενα."],
    &["¡Excelente, volvería a comprarlo mañana!", "Отлично, спасибо большое!", "とても気に入りました。最高です！", "Déjà commandé deux fois, parfait !", "ΤΕΛΕΙΟΣ ΗΧΟΣ, σας ευχαριστώ πολύ!", "Großartig, sehr schöne Qualität."],
];

/// Pictographs by sentiment: emoticons, emoji with skin tones, selectors and joiners, keycaps, flags.
pub(crate) const EMOJI: [&[&str]; 5] = [
    &["😡", "👎🏽", "💩", ":-(", "🤬🤬"],
    &["😕", "👎", ":-/", "😒"],
    &["😐", "🤷\u{200d}♀️", "¯\\_(ツ)_/¯"],
    &["🙂", "👍", ":-)", "👍🏼"],
    &["❤️", "😍😍", "👨\u{200d}👩\u{200d}👧", "🎉", "5️⃣⭐", "🇬🇷", "<3", "💯"],
];

/// Neutral sentences.
#[rustfmt::skip]
pub(crate) const FACTS: &[&str] = &[
    "I bought this {thing} for my {relative} {when}.", "it arrived {when}.", "we use it for {use}.", "my {relative} found it at {shop}.",
    "it replaces an old {brand} {model}.", "the {color} one, size {number}.", "I have owned {number} of them over the years.",
    "this is my {number}th {thing} from {brand}.", "it comes with a spare {part}.", "I read {number} reviews before I ordered the {model}.",
    "the box says \"{brand} {model}\".", "ordered {when}, opened {when}.", "I live in {brand}ville and shop at {shop} & {brand}.",
    "my {relative} works at a café & uses the {model} there.", "we have a {brand} and a {brand} at home.", "I am no expert on a {thing}.",
    "for reference, I mostly need it for {use}.", "the {color} {thing} sits next to the {part}.", "\"{brand}\" is printed on the {part}.",
    "I paid ${number}.99 for the {model} {when}.", "the {part} is {number} inches long.", "my {relative}'s {thing} is a {brand}.",
    "it was a gift from my {relative}.", "the naïve me thought a {thing} is a {thing}.", "it came from {shop}, in a {color} box.",
    "we took it to the {place} {when}.", "I mean the {brand} {model}, not the {model}.", "it's {color}, like the {part}.",
    "I keep it in the {place} next to the {part}.", "there is also a {color} version, the {model}.",
];

/// Texts of stop words only, for every list of stop words.
pub(crate) const STOPWORDS_ONLY: &[&str] = &[
    "It is what it is",
    "it is what it is.",
    "This is it!",
    "And so it is...",
    "What can I do? I am not you",
    "it was",
];

/// Texts that cleaning leaves empty.
pub(crate) const WITHOUT_WORDS: &[&str] = &[
    "!!!",
    "5/5 :-)",
    "",
    "10/10",
    "...",
    "👍👍👍",
    "<br />",
    "&#128077;&nbsp;",
    "***** 5 *****",
    "$$$ <3",
    " \n ",
];

/// The words of a slot.
#[rustfmt::skip]
pub(crate) fn list(name: &str) -> &'static [&'static str] {
    match name {
        "great" => &[
            "wonderful", "superb", "fantastic", "excellent", "outstanding", "brilliant", "amazing", "perfect", "gorgeous", "terrific",
            "stunning", "flawless", "marvelous", "delightful", "exceptional", "incredible", "awesome", "magnificent", "impeccable", "splendid",
        ],
        "good" => &[
            "good", "nice", "solid", "decent", "pleasant", "reliable", "sturdy", "comfortable", "handy", "useful", "lovely", "neat",
            "dependable", "well-made", "practical", "accurate", "smooth", "tidy", "sensible", "pleasing", "durable", "generous", "crisp",
        ],
        "fair" => &["okay", "average", "ordinary", "acceptable", "fine", "basic", "passable", "middling", "standard", "adequate", "so-so"],
        "poor" => &[
            "weak", "flimsy", "cheap", "disappointing", "noisy", "clumsy", "awkward", "dull", "uneven", "slow", "bulky", "scratchy", "thin",
            "fragile", "mediocre", "annoying", "confusing", "stiff", "wobbly", "leaky", "overpriced", "misleading", "sloppy", "bad",
        ],
        "awful" => &[
            "terrible", "awful", "useless", "horrible", "dreadful", "worthless", "defective", "broken", "pathetic", "atrocious", "unusable",
            "ridiculous", "disgusting", "shoddy", "unbearable", "hopeless", "appalling", "rotten", "faulty", "dangerous",
        ],
        "junk" => &["junk", "garbage", "rubbish", "trash", "waste of money", "rip-off", "disaster", "failure"],
        "love" => &["love", "adore", "absolutely love", "really enjoy", "treasure", "swear by"],
        "works" => &["works", "runs", "turns on", "stays put", "holds together", "does its job", "connects"],
        "owned" => &["owned", "used", "bought", "tried", "seen", "had", "ordered", "held in my hands"],
        "fix" => &["fix", "adjust", "glue", "tighten", "replace", "repair", "clean", "assemble", "reset"],
        "very" => &["very", "really", "so", "truly", "quite", "absolutely", "extremely", "incredibly", "surprisingly", "just"],
        "rather" => &["rather", "fairly", "pretty", "somewhat", "a bit", "a little", "kind of", "mostly"],
        "relative" => &[
            "wife", "husband", "son", "daughter", "mother", "father", "sister", "brother", "grandmother", "grandson", "niece", "nephew",
            "neighbor", "roommate", "boss", "teacher", "friend", "cousin", "fiancée", "partner", "uncle", "aunt",
        ],
        "time" => &[
            "two days", "a week", "one month", "three washes", "an hour", "a year", "half a year", "ten minutes", "the first use", "a weekend",
            "two seasons", "one trip", "a dozen uses", "the holidays", "a few weeks", "{number} months", "{number} days",
        ],
        "when" => &[
            "last year", "in January", "in March", "in June", "in July", "in October", "for Christmas", "on a Tuesday", "yesterday",
            "this spring", "two summers ago", "after we moved", "during the sale", "on Friday", "for a birthday", "before the trip",
        ],
        "shop" => &["the mall", "the corner store", "a yard sale", "{brand}", "an outlet", "the airport", "a trade fair", "{brand}'s"],
        "color" => &["red", "blue", "black", "green", "white", "purple", "silver", "orange", "beige", "turquoise", "gray", "crème"],
        "part" => &[
            "lamp", "strap", "adapter", "bag", "screw", "cover", "key", "label", "shelf", "drawer", "hook", "cushion", "window", "door",
            "mirror", "sofa", "sink", "desk", "bottle", "basket", "tray", "clip", "sleeve", "stand", "remote", "battery",
        ],
        "place" => &[
            "kitchen", "garage", "beach", "office", "basement", "car", "bathroom", "garden", "attic", "cabin", "lake", "school", "bedroom",
            "boat", "hotel", "park", "jalapeño festival", "cafe\u{301}", "workshop", "living room",
        ],
        _ => panic!("the grammar has no list {name:?}"),
    }
}
