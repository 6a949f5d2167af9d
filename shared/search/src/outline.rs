//! The items of a file with code: functions, methods and types with their names, by the grammar of its language.
//!
//! A grammar of tree-sitter reads every text, also one that is no code of its language. Its work is bounded by steps that count and not by a
//! clock, so that a text is cut in the same way on every machine.

use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// The longest text that a grammar reads, in bytes: of a longer one, which a program wrote, nobody looks for functions.
const MAX_TEXT: usize = 1024 * 1024;
/// How deep items in items are noted: an outer one says where a deeper one is.
const MAX_DEPTH: usize = 8;
/// The longest name of an item, in characters.
const MAX_NAME: usize = 100;
/// The parser tells of its progress once per hundred steps. A text has about one step per byte; one that is no code at all takes several.
const BYTES_OF_A_HUNDRED_STEPS: usize = 4;

/// A language with a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Go,
    JavaScript,
    Python,
    Rust,
    Tsx,
    TypeScript,
}

impl Language {
    /// By the end of a file's name.
    pub fn of(end: &str) -> Option<Self> {
        Some(match end {
            "go" => Self::Go,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "py" | "pyi" => Self::Python,
            "rs" => Self::Rust,
            "tsx" => Self::Tsx,
            "ts" | "mts" | "cts" => Self::TypeScript,
            _ => return None,
        })
    }

    fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Go => tree_sitter_go::LANGUAGE,
            Self::JavaScript => tree_sitter_javascript::LANGUAGE,
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::Rust => tree_sitter_rust::LANGUAGE,
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        }
        .into()
    }

    /// The kinds of nodes that are items.
    fn items(self) -> &'static [&'static str] {
        match self {
            Self::Go => &["function_declaration", "method_declaration", "type_spec"],
            Self::JavaScript => {
                &["class_declaration", "function_declaration", "generator_function_declaration", "method_definition"]
            }
            Self::Python => &["class_definition", "function_definition"],
            Self::Rust => &[
                "enum_item",
                "function_item",
                "impl_item",
                "macro_definition",
                "mod_item",
                "struct_item",
                "trait_item",
                "union_item",
            ],
            Self::Tsx | Self::TypeScript => &[
                "abstract_class_declaration",
                "class_declaration",
                "enum_declaration",
                "function_declaration",
                "generator_function_declaration",
                "interface_declaration",
                "internal_module",
                "method_definition",
                "type_alias_declaration",
            ],
        }
    }
}

/// Nodes around an item that begin before it: the comments above them are those of the item.
const AROUND: [&str; 5] =
    ["decorated_definition", "export_statement", "lexical_declaration", "type_declaration", "variable_declaration"];

/// A function, method or type with the comments, attributes and decorators above it. Lines count from one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    first: u64,
    last: u64,
    /// How many items it is in.
    depth: usize,
    name: String,
}

/// The items of a text, to be asked line by line, in order.
#[derive(Default)]
pub(crate) struct Outline {
    /// In the order of their first lines, an outer one before those in it.
    items: Vec<Item>,
    next: usize,
    /// Those that have the line, by their places, each in the one before it.
    open: Vec<usize>,
    /// The least depth at which items beside each other have the line; none when there are no such items.
    beside: Option<usize>,
}

impl Outline {
    /// None for a text that is too long or too far from the language.
    pub fn of(text: &str, language: Language) -> Option<Self> {
        let tree = parse(text, language)?;
        Some(Self { items: items(&tree, text, language), ..Self::default() })
    }

    /// Goes to a line; whether an item begins there.
    pub fn go_to(&mut self, line: u64) -> bool {
        self.open.retain(|at| self.items.get(*at).is_some_and(|item| item.last >= line));
        self.beside = None;
        let before = self.next;
        while let Some(item) = self.items.get(self.next).filter(|item| item.first <= line) {
            let depth = item.depth;
            let other = self.open.iter().position(|at| self.items.get(*at).is_some_and(|open| open.depth >= depth));
            if let Some(other) = other {
                self.beside = Some(self.beside.map_or(depth, |least| least.min(depth)));
                self.open.truncate(other);
            }
            self.open.push(self.next);
            self.next += 1;
        }
        self.next > before
    }

    /// The names of the items that have the line, the outermost first. A line with items beside each other, such as the only one of a script without line
    /// breaks, is in none of them alone.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let least = self.beside.unwrap_or(usize::MAX);
        let open = self.open.iter().filter_map(|at| self.items.get(*at));
        open.filter(move |item| item.depth < least).map(|item| item.name.as_str())
    }
}

fn parse(text: &str, language: Language) -> Option<Tree> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&language.grammar()).ok()?;
    let mut left = 1000 + text.len() / BYTES_OF_A_HUNDRED_STEPS;
    let mut is_over = |_: &tree_sitter::ParseState| {
        left = left.saturating_sub(1);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = text.as_bytes();
    let options = ParseOptions::new().progress_callback(&mut is_over);
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

/// The comments and attributes that the next node has above it, by their lines.
#[derive(Clone, Copy)]
struct Above {
    first: u64,
    last: u64,
}

impl Above {
    /// The first line of a node with what is right above it.
    fn or(above: Option<Self>, first: u64) -> u64 {
        above.filter(|above| first <= above.last + 1).map_or(first, |above| above.first)
    }
}

/// The nodes beside each other that the walk is among.
#[derive(Clone, Copy, Default)]
struct Level {
    above: Option<Above>,
    /// The last line of the one before.
    last: u64,
}

/// All items of a tree. The walk has no recursion: a text may nest as deep as it is long.
fn items(tree: &Tree, text: &str, language: Language) -> Vec<Item> {
    let mut found: Vec<Item> = Vec::new();
    let mut cursor = tree.walk();
    let (mut levels, mut around) = (vec![Level::default()], Vec::<usize>::new());
    loop {
        let node = cursor.node();
        let (own, last) = lines(node);
        let kind = node.kind();
        let mut inner = None;
        around.retain(|end| *end > node.start_byte());
        if let Some(level) = levels.last_mut().filter(|_| node.is_named()) {
            let first = Above::or(level.above, own);
            if kind.ends_with("comment") || matches!(kind, "attribute_item" | "decorator") {
                // One behind code on its line is about that.
                level.above = (own > level.last).then_some(Above { first, last });
            } else {
                level.above = None;
                inner = AROUND.contains(&kind).then_some(Above { first, last: own });
                if around.len() < MAX_DEPTH
                    && let Some(name) = name(node, text, language)
                {
                    found.push(Item { first, last, depth: around.len(), name });
                    around.push(node.end_byte());
                }
            }
            level.last = last;
        }
        if cursor.goto_first_child() {
            levels.push(Level { above: inner, last: 0 });
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
            levels.pop();
        }
    }
}

/// The first and last line of a node. One that ends with the end of a line has nothing of the next.
fn lines(node: Node<'_>) -> (u64, u64) {
    let (start, end) = (node.start_position(), node.end_position());
    let last = if end.column == 0 && end.row > start.row { end.row - 1 } else { end.row };
    (start.row as u64 + 1, last as u64 + 1)
}

/// The name of an item; none for other nodes.
fn name(node: Node<'_>, text: &str, language: Language) -> Option<String> {
    let of = |field: &str| {
        let node = node.child_by_field_name(field)?;
        text.get(node.byte_range())
    };
    let kind = node.kind();
    let is_function = |value: Node<'_>| matches!(value.kind(), "arrow_function" | "function_expression" | "class");
    let name = match kind {
        // `impl Display for Path`: as its methods are looked for.
        "impl_item" => match (of("trait"), of("type")?) {
            (Some(of), own) => format!("{of} for {own}"),
            (None, own) => own.to_owned(),
        },
        // `func (p *Parser) next()`.
        "method_declaration" => {
            let receiver = of("receiver").unwrap_or_default();
            let own = receiver.trim_matches(['(', ')']).rsplit([' ', '*']).next().unwrap_or_default();
            if own.is_empty() { of("name")?.to_owned() } else { format!("{own} > {}", of("name")?) }
        }
        "variable_declarator" if node.child_by_field_name("value").is_some_and(is_function) => of("name")?.to_owned(),
        kind if language.items().contains(&kind) => of("name")?.to_owned(),
        _ => return None,
    };
    let name: String = name.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(name.chars().take(MAX_NAME).collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// First line, last line and name of each item.
    fn shown(text: &str, end: &str) -> Vec<(u64, u64, String)> {
        let outline = Outline::of(text, Language::of(end).unwrap()).unwrap();
        outline.items.into_iter().map(|item| (item.first, item.last, item.name)).collect()
    }

    fn listed<const N: usize>(items: [(u64, u64, &str); N]) -> Vec<(u64, u64, String)> {
        items.map(|(first, last, name)| (first, last, name.to_owned())).to_vec()
    }

    #[test]
    fn items_of_rust_have_their_comments_and_attributes() {
        let text = "use a;\n\n/// A path.\n#[derive(Debug)]\nstruct Path;\n\n// Apart.\n\nimpl Display\n    for Path {\n    /// Shows it.\n    fn fmt(&self) {}\n}\nmod deep { impl<T> Set<T> { fn add() {} } }\n";
        let expected = [
            (3, 5, "Path"),
            (9, 13, "Display for Path"),
            (11, 12, "fmt"),
            (14, 14, "deep"),
            (14, 14, "Set<T>"),
            (14, 14, "add"),
        ];
        assert_eq!(shown(text, "rs"), listed(expected));
    }

    #[test]
    fn items_of_python_have_their_decorators() {
        let text = "import a\n\n# The reader.\n@final\nclass Reader:\n    @property\n    def name(self):\n        return 1\n\nasync def run():\n    pass\n";
        assert_eq!(shown(text, "py"), listed([(3, 8, "Reader"), (6, 8, "name"), (10, 11, "run")]));
    }

    #[test]
    fn items_of_scripts_are_functions_that_have_a_name_too() {
        let text = "// Adds.\nexport const add = (a, b) => {\n  return a + b;\n};\nconst three = 3;\nexport default class Box {\n  open() {}\n}\n";
        assert_eq!(shown(text, "mjs"), listed([(1, 4, "add"), (6, 8, "Box"), (7, 7, "open")]));
        let typed = "/** A row. */\nexport interface Row {\n  id: string;\n}\nnamespace Deep {\n  export type Id = string;\n}\nenum Kind { A }\n";
        assert_eq!(shown(typed, "ts"), listed([(1, 4, "Row"), (5, 7, "Deep"), (6, 6, "Id"), (8, 8, "Kind")]));
        assert_eq!(shown("function Page() {\n  return <p>x</p>;\n}\n", "tsx"), listed([(1, 3, "Page")]));
    }

    #[test]
    fn methods_of_go_have_the_type_that_receives_them() {
        let text =
            "package a\n\n// Parser reads.\ntype Parser struct{}\n\nfunc (p *Parser) Next() {}\n\nfunc main() {}\n";
        assert_eq!(shown(text, "go"), listed([(3, 4, "Parser"), (6, 6, "Parser > Next"), (8, 8, "main")]));
    }

    #[test]
    fn a_line_has_the_names_of_the_items_around_it() {
        let text = "impl A {\n    fn b() {\n    }\n}\n\nfn c() {}\n";
        let mut outline = Outline::of(text, Language::Rust).unwrap();
        let mut seen = Vec::new();
        for line in 1..=6 {
            let begins = outline.go_to(line);
            seen.push((begins, outline.names().collect::<Vec<_>>().join(" > ")));
        }
        let expected = [(true, "A"), (true, "A > b"), (false, "A > b"), (false, "A"), (false, ""), (true, "c")];
        assert_eq!(seen, expected.map(|(begins, names)| (begins, names.to_owned())));
    }

    #[test]
    fn a_line_with_items_beside_each_other_is_in_what_is_around_all_of_them() {
        let text = "impl A { fn b() {} fn c() {\n} }\nfn d() {\n} fn e() {\n}\n";
        let mut outline = Outline::of(text, Language::Rust).unwrap();
        let mut seen = Vec::new();
        for line in 1..=5 {
            outline.go_to(line);
            seen.push(outline.names().collect::<Vec<_>>().join(" > "));
        }
        assert_eq!(seen, ["A", "A > c", "d", "", "e"]);
    }

    #[test]
    fn a_comment_behind_code_is_about_that_code() {
        let text = "fn a() {\n} // end of a\nfn b() {}\n";
        assert_eq!(shown(text, "rs"), listed([(1, 2, "a"), (3, 3, "b")]));
    }

    #[test]
    fn items_in_items_are_noted_to_a_bounded_depth() {
        let deep = 50_000;
        let text = format!("{}{}", "mod a{\n".repeat(deep), "}\n".repeat(deep));
        let mut outline = Outline::of(&text, Language::Rust).unwrap();
        for line in 1..=2 * deep as u64 {
            outline.go_to(line);
            assert!(outline.names().count() <= MAX_DEPTH);
        }
    }

    #[test]
    fn texts_that_mean_harm_end_and_do_not_nest_our_stack() {
        let most = MAX_TEXT / 2;
        for language in [Language::Go, Language::JavaScript, Language::Python, Language::Rust, Language::Tsx] {
            for part in ["(", "{", "fn ", "<", "\u{0}", "\"", "class A:\n ", "/*", "é(", "if (", "a,"] {
                // No outcome is wrong but a crash and a run without end.
                drop(Outline::of(&part.repeat(most / part.len() / 8), language));
            }
        }
        assert!(Outline::of(&"a".repeat(MAX_TEXT + 1), Language::Rust).is_none());
    }
}
