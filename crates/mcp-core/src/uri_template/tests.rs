use std::path::Path;

use super::{error::Flaw, matcher::Table, *};

fn template(source: &str) -> UriTemplate {
    UriTemplate::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// What matched, as `a=1 b=2`.
fn found(source: &str, uri: &str) -> Option<String> {
    let found = template(source).matches(uri)?;
    Some(found.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "))
}

fn assert_found(source: &str, uri: &str, expected: &str) {
    assert_eq!(found(source, uri).as_deref(), Some(expected), "{source} on {uri}");
}

fn assert_none(source: &str, uri: &str) {
    assert_eq!(found(source, uri), None, "{source} on {uri}");
}

/// The variables of the RFC, sections 1.2 and 3.2.
fn rfc(name: &str) -> Option<&'static str> {
    Some(match name {
        "var" => "value",
        "hello" => "Hello World!",
        "half" => "50%",
        "who" => "fred",
        "base" => "http://example.com/home/",
        "path" => "/foo/bar",
        "v" => "6",
        "x" => "1024",
        "y" => "768",
        "empty" => "",
        _ => return None,
    })
}

#[test]
fn the_examples_of_the_rfc_are_filled_in() {
    let examples = "
        {var} value | {hello} Hello%20World%21 | {half} 50%25 | O{empty}X OX | O{undef}X OX
        {x,y} 1024,768 | {x,hello,y} 1024,Hello%20World%21,768 | ?{x,empty} ?1024, | ?{x,undef} ?1024
        ?{undef,y} ?768 | map?{x,y} map?1024,768 | {v,var.2,who} 6,fred
        {+var} value | {+hello} Hello%20World! | {+half} 50%25 | {base}index http%3A%2F%2Fexample.com%2Fhome%2Findex
        {+base}index http://example.com/home/index | O{+empty}X OX | O{+undef}X OX | {+path}/here /foo/bar/here
        here?ref={+path} here?ref=/foo/bar | {+x,hello,y} 1024,Hello%20World!,768 | {+path,x}/here /foo/bar,1024/here
        {#var} #value | {#hello} #Hello%20World! | {#half} #50%25 | foo{#empty} foo# | foo{#undef} foo
        {#x,hello,y} #1024,Hello%20World!,768 | {#path,x}/here #/foo/bar,1024/here | X{#var} X#value
        {.who} .fred | {.half,who} .50%25.fred | X{.var} X.value | X{.x,y} X.1024.768 | X{.empty} X. | X{.undef} X
        {/who} /fred | {/half,who} /50%25/fred | {/var} /value | {/var,empty} /value/ | {/var,undef} /value
        {/var,x}/here /value/1024/here
        {;who} ;who=fred | {;half} ;half=50%25 | {;empty} ;empty | {;v,empty,who} ;v=6;empty;who=fred
        {;v,bar,who} ;v=6;who=fred | {;x,y} ;x=1024;y=768 | {;x,y,undef} ;x=1024;y=768
        {?who} ?who=fred | {?half} ?half=50%25 | {?x,y} ?x=1024&y=768 | {?x,y,empty} ?x=1024&y=768&empty=
        {?x,y,undef} ?x=1024&y=768
        {&who} &who=fred | {&half} &half=50%25 | ?fixed=yes{&x} ?fixed=yes&x=1024 | {&x,y,empty} &x=1024&y=768&empty=
        {&x,y,undef} &x=1024&y=768";
    for example in examples.split(['\n', '|']).map(str::trim).filter(|example| !example.is_empty()) {
        let (source, expected) = example.split_once(' ').expect("two words");
        assert_eq!(template(source).expand(rfc), expected, "{source}");
    }
}

#[test]
fn an_escape_that_is_there_stays_where_reserved_characters_stay() {
    let value = |_: &str| Some("a%2Fb%zz/ü");
    assert_eq!(template("{+x}").expand(value), "a%2Fb%25zz/%C3%BC");
    assert_eq!(template("{x}").expand(value), "a%252Fb%25zz%2F%C3%BC");
    assert_eq!(template("/naïve a%20/").expand(value), "/na%C3%AFve%20a%20/");
}

#[test]
fn what_is_no_template_is_refused_with_its_place() {
    let name = |name: &str| Flaw::Name(name.to_owned());
    let cases = [
        ("a{b", 1, Flaw::Unclosed),
        ("a{b{c}", 1, Flaw::Unclosed),
        ("a}b", 1, Flaw::Unopened),
        ("{a}}", 3, Flaw::Unopened),
        ("a{}", 1, Flaw::Empty),
        ("a{?}", 1, Flaw::Empty),
        ("a{$b}", 2, Flaw::Operator('$')),
        ("a{|b}", 2, Flaw::Operator('|')),
        ("{,a}", 1, Flaw::Operator(',')),
        ("{?a,}", 4, name("")),
        ("{a,b c}", 3, name("b c")),
        ("{a..b}", 1, name("a..b")),
        ("{a%2}", 1, name("a%2")),
        ("{ü}", 1, name("ü")),
        ("{user-id}", 1, name("user-id")),
        ("{a}/{?b,a}", 8, Flaw::Duplicate("a".to_owned())),
        ("{a:3}", 2, Flaw::Prefix),
        ("{/b,a*}", 5, Flaw::Explode),
        ("{a}{b}", 3, Flaw::Adjacent),
        ("x{/a}{+b}", 5, Flaw::Adjacent),
        ("ü%2", 2, Flaw::Escape),
        ("a\n", 1, Flaw::Control),
    ];
    for (source, position, flaw) in cases {
        let error = UriTemplate::parse(source).expect_err(source);
        assert_eq!((error.position(), &error.flaw), (position, &flaw), "{source}");
    }
    let error = UriTemplate::parse("a{b{c}").expect_err("unclosed");
    assert_eq!(error.to_string(), "URI template, byte 1: '{' without its '}'");
}

#[test]
fn a_template_has_bounds() {
    let names = |count: usize| format!("{{?{}}}", (0..count).map(|n| format!("v{n}")).collect::<Vec<_>>().join(","));
    assert!(UriTemplate::parse(&names(UriTemplate::MOST_VARIABLES)).is_ok());
    let error = UriTemplate::parse(&names(UriTemplate::MOST_VARIABLES + 1)).expect_err("one too many");
    assert_eq!(error.flaw, Flaw::TooManyVariables);
    assert!(UriTemplate::parse(&"a".repeat(UriTemplate::LONGEST)).is_ok());
    let error = UriTemplate::parse(&"a".repeat(UriTemplate::LONGEST + 1)).expect_err("one too many");
    assert_eq!((error.position(), error.flaw), (UriTemplate::LONGEST, Flaw::TooLong));
    let longest = "a".repeat(UriTemplate::LONGEST_URI);
    assert!(template("{a}").matches(&longest).is_some());
    assert!(template("{a}").matches(&format!("{longest}a")).is_none());
}

#[test]
fn literals_are_literal() {
    assert_found("a.b*c(d)|[e]+^$\\?{x}", "a.b*c(d)|[e]+^$\\?1", "x=1");
    assert_none("a.b/{x}", "aXb/1");
    assert_none("a/{x}", "A/1");
    assert_none("a/{x}/b", "a/1/b/");
    assert_none("a/{x}/b", "xa/1/b");
    assert_found("", "", "");
    assert_none("", "a");
    // As written, in either spelling.
    assert_found("a%2Fb/{x}", "a%2Fb/1", "x=1");
    assert_none("a%2Fb/{x}", "a%2fb/1");
    assert_none("a%2Fb/{x}", "a/b/1");
}

#[test]
fn c166_a_literal_that_no_uri_can_hold_matches_itself_and_its_escape() {
    for uri in ["file:///docs/naïve/1", "file:///docs/na%C3%AFve/1", "file:///docs/na%c3%afve/1"] {
        assert_found("file:///docs/naïve/{n}", uri, "n=1");
    }
    for uri in ["file:///my docs/1", "file:///my%20docs/1"] {
        assert_found("file:///my docs/{n}", uri, "n=1");
    }
    assert_none("file:///my docs/{n}", "file:///my+docs/1");
}

#[test]
fn c163_values_are_decoded_exactly_once() {
    assert_found("note://{id}", "note://caf%C3%A9%20%2B1", "id=café +1");
    assert_found("note://{id}", "note://café", "id=café");
    assert_found("note://{id}", "note://a+b", "id=a+b");
    assert_found("note://{id}", "note://%2e%2E", "id=..");
    assert_found("note://{id}", "note://%252e", "id=%2e");
    assert_found("note://{id}", "note://a%2Fb", "id=a/b");
    assert_found("note://{id}", "note://a%00b", "id=a\0b");
    for broken in ["%", "%2", "%ZZ", "a%+1", "%é", "%C3", "%C3(", "%FF", "%ED%A0%80", "%C0%AF"] {
        assert_none("note://{id}", &format!("note://{broken}"));
        assert_none("note://{+id}", &format!("note://{broken}"));
        assert_none("note://{?id}", &format!("note://?id={broken}"));
    }
}

#[test]
fn an_escape_is_not_split_between_value_and_literal() {
    assert_none("{a}2", "x%22");
    assert_found("{a}2", "x%222", "a=x\"");
    assert_found("{a}2{b}", "x2y%32z", "a=x b=y2z");
    assert_none("{+a}/b", "x%2Fb");
}

#[test]
fn c164_a_simple_value_stays_in_its_segment() {
    for uri in ["a://", "a://x/y", "a://x?y", "a://x#y", "a:///"] {
        assert_none("a://{x}", uri);
    }
    assert_found("a://{x}", "a://x,y;z=1&w@:", "x=x,y;z=1&w@:");
    assert_found("test://template/{id}/data", "test://template/123/data", "id=123");
    assert_found("{a}-{b}", "x-y-z", "a=x-y b=z");
    assert_found("at?a={a}&b={b}", "at?a=1&b=2", "a=1 b=2");
    assert_none("at?a={a}&b={b}", "at?a=1&b=2&b=3");
}

#[test]
fn a_reserved_value_takes_slashes_and_leaves_the_query_to_the_template() {
    assert_found("f://{+p}", "f://a/b?c#d", "p=a/b?c#d");
    assert_found("f://{+p}{?q}", "f://a/b?q=c", "p=a/b q=c");
    assert_found("f://{+p}/edit?q={q}", "f://a/edit/edit?q=c", "p=a/edit q=c");
    assert_none("f://{+p}{?q}", "f://a/b?other=c");
    assert_none("f://{+p}/edit{#q}", "f://a#b/edit");
    assert_none("f://{+p}", "f://");
    assert_found("f://{+p}{.ext}", "f://a/b.md", "p=a/b ext=md");
}

#[test]
fn each_operator_finds_its_values() {
    assert_found("x{#f}", "x#a/b?c#d", "f=a/b?c#d");
    assert_found("x{#f,g}", "x#a,b", "f=a g=b");
    assert_found("{name}{.ext}", "a.tar.gz", "name=a ext=tar.gz");
    assert_found("www{.a,b}", "www.x.y", "a=x b=y");
    assert_none("www{.a,b}", "www.x.y.z");
    assert_found("u{/a,b}/edit", "u/1/2/edit", "a=1 b=2");
    assert_found("u{/a,b}/edit", "u/1/edit", "a=1");
    assert_found("u{/a,b}/edit", "u/edit", "");
    assert_none("u{/a,b}/edit", "u/1/2/3/edit");
    assert_found("u{/a}", "u/", "a=");
    assert_found("{x,y}", "1,2", "x=1 y=2");
    assert_found("{x,y}", "1", "x=1");
    assert_none("{x,y}", "1,2,3");
    assert_found("m{;x,y}/z", "m;y=2;x/z", "x= y=2");
    assert_none("m{;x}", "m;x=1/z");
}

#[test]
fn parameters_come_in_any_order_and_once() {
    assert_found("s{?a,ab}", "s?ab=2&a=1", "a=1 ab=2");
    assert_found("s{?a,ab}", "s?ab=2", "ab=2");
    assert_found("s{?a,ab}", "s", "");
    assert_found("s{?a,ab}", "s?a=x/y?z=w&ab", "a=x/y?z=w ab=");
    assert_found("s{?a,ab}", "s?a=1?ab=2", "a=1?ab=2");
    assert_found("s?k=v{&a,b}#f", "s?k=v&b=2&a=1#f", "a=1 b=2");
    for uri in ["s?", "s?a=1&a=2", "s?c=1", "s?a=1&c=1", "s&a=1", "s?a=1&", "s?a=1#", "s?A=1"] {
        assert_none("s{?a,ab}", uri);
    }
}

/// Numbers that are the same in each run (Knuth's generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn text(&mut self, alphabet: &[char], least: usize) -> String {
        (0..least + self.below(5)).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }
}

#[test]
fn what_is_filled_in_is_found_again() {
    // Each alphabet has what the expression can tell from its surroundings: `.` and what `+` keeps are not escaped.
    let any = ['a', 'Z', '/', '?', '#', '%', '2', 'F', '&', '=', ';', ',', '+', ' ', 'é', '🦀', '\0', '\\', '{'];
    let wide = ['a', 'Z', '/', '%', 'é', '&', ' ', '=', '@', ':'];
    let cases = [
        ("a://{x}/{y}-{z}", &any[..], 1),
        ("a://{x,y,z}", &any, 1),
        ("a:/{/x,y}/lit{/z}", &any, 1),
        ("{x}{.y}{/z}", &any, 1),
        ("host{.x,y}.com{#z}", &any[..1], 1),
        ("m{;x,y,z}", &any, 0),
        ("m{?x,y,z}", &any, 0),
        ("m?k=v{&x,y,z}#f", &any, 0),
        ("{x}{?y}{&z}", &any, 1),
        ("f:///{+x}{?y}{#z}", &wide, 1),
        ("f:///{+x,y}?q={z}", &wide, 1),
    ];
    let mut numbers = Numbers(1);
    for (source, alphabet, least) in cases {
        let template = template(source);
        for _ in 0..200 {
            let values = ["x", "y", "z"].map(|name| (name, numbers.text(alphabet, least)));
            let value = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value);
            let uri = template.expand(value);
            let found = template.matches(&uri).unwrap_or_else(|| panic!("{source}: {values:?} in {uri}"));
            let given = values.iter().map(|(name, value)| (*name, &**value));
            assert!(found.iter().eq(given), "{source}: {values:?} in {uri}, found {found:?}");
            assert_eq!(template.expand(|name| found.get(name)), uri);
        }
    }
}

#[test]
fn what_escaping_makes_too_long_matches_nothing() {
    let value = "{".repeat(UriTemplate::LONGEST_URI / 2);
    let template = UriTemplate::parse("{x}").unwrap();
    assert!(template.matches(&value).is_some());
    assert!(template.matches(&template.expand(|_| Some(value.as_str()))).is_none());
    fuzz(format!("{{x}}\n{value}").as_bytes());
}

#[test]
fn any_text_is_read_and_matched_without_a_panic() {
    let alphabet = ['{', '}', '{', '}', 'a', 'b', '?', '+', '#', '.', '/', ';', '&', ',', '%', '2', '=', 'é'];
    let (mut numbers, mut read) = (Numbers(2), 0);
    for _ in 0..20_000 {
        let source = numbers.text(&alphabet, 3) + &numbers.text(&alphabet, 3);
        let Ok(template) = UriTemplate::parse(&source) else { continue };
        read += 1;
        let uri = numbers.text(&alphabet, 3);
        for uri in [&uri, &source, &template.expand(|_| Some(&uri)), &template.expand(|_| None)] {
            let _ = template.matches(uri);
        }
    }
    assert!(read > 100, "{read} templates");
}

#[test]
fn hostile_input_costs_a_cell_a_byte_and_step() {
    let list = |separator: &str, begin: &str, end: &str| {
        let names: Vec<_> = (0..UriTemplate::MOST_VARIABLES).map(|n| format!("{begin}v{n}{end}")).collect();
        names.join(separator)
    };
    let cases = [
        (list("-", "{", "}") + "!", "-".repeat(UriTemplate::LONGEST_URI)),
        (list("/", "{+", "}") + "!", "/a".repeat(UriTemplate::LONGEST_URI / 2)),
        (list("", "{/", "}") + "!", "/".repeat(UriTemplate::LONGEST_URI)),
        (format!("{{?{}}}!", list(",", "", "")), "?v0=?v1&v2=".repeat(UriTemplate::LONGEST_URI / 11)),
        ("{+x}".to_owned() + &"a".repeat(900) + "b", "a".repeat(UriTemplate::LONGEST_URI)),
    ];
    for (source, uri) in cases {
        let template = template(&source);
        let program = &template.0.program;
        assert!(program.steps.len() <= 2 + 9 * UriTemplate::MOST_VARIABLES, "{}: {source}", program.steps.len());
        let table = Table::fill(program, uri.as_bytes(), 0);
        assert_eq!(table.cells, program.steps.len() * (uri.len() + 1));
        assert_eq!(table.walk(program.start, 0, UriTemplate::MOST_VARIABLES), None, "{source}");
    }
}

/// A URI that begins in another way is told at once, however many templates there are.
#[test]
fn what_begins_in_another_way_is_not_even_compared() {
    assert_eq!(template("file:///docs/na\u{ef}ve/{n}").prefix(), "file:///docs/na");
    assert_eq!(template("{+uri}").prefix(), "");
    assert_eq!(template("x:a%41{n}").prefix(), "x:a");
    assert_eq!(template("x:plain").prefix(), "x:plain");
}

#[test]
fn the_most_specific_comes_first() {
    let order = ["a://bc/{x}", "a://{x}/{y}", "a://{x}", "a://{x}{?y}", "a://{+x}", "a:{x}"];
    let specificity = order.map(|source| template(source).specificity());
    assert!(specificity.is_sorted_by(|one, next| one < next), "{specificity:?}");
    assert_eq!(template("a/{x}").specificity(), template("b/{y}").specificity());
}

#[test]
fn c164_a_path_stays_inside_its_base() {
    let base = Path::new("base");
    let join = |value: &str| safe_join(base, value);
    assert_eq!(join("a"), Ok(base.join("a")));
    assert_eq!(join(".hidden/a b/c..d/…"), Ok(base.join(".hidden").join("a b").join("c..d").join("…")));
    for dots in ["..", ".", "a/../b", "a/..", "../a", ".. ", "...", "a/ /b"] {
        assert_eq!(join(dots), Err(PathRefused::Dots), "{dots}");
    }
    for absolute in ["/", "/a", "//server/share"] {
        assert_eq!(join(absolute), Err(PathRefused::Absolute), "{absolute}");
    }
    for empty in ["", "a/", "a//b"] {
        assert_eq!(join(empty), Err(PathRefused::Empty), "{empty}");
    }
    for drive in ["C:", "c:a", "C:/a", "a/D:b"] {
        assert_eq!(join(drive), Err(PathRefused::Drive), "{drive}");
    }
    assert_eq!(join("a\0b"), Err(PathRefused::Nul));
    assert_eq!(join("..\\a"), Err(PathRefused::Backslash));
    let found = template("file://docs/{name}").matches("file://docs/..%2Fkeys%2Fid").expect("one segment");
    assert_eq!(found.path("name", base), Err(PathRefused::Dots));
    assert_eq!(found.path("other", base), Err(PathRefused::Missing));
}
