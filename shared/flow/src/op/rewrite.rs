//! Rewriting of a parsed expression before it runs: names are checked, the meter's gates are put in, and the fields of
//! the scope that it reads are noted.

use super::{
    ROOTS,
    bridge::{COPY, ITEMS, LOOK, MOST_PATTERNS, TOUCH, TYPES, compiled_pattern},
    catalog::{self, FUNCTIONS, Side, misuse},
};
use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use std::collections::{BTreeMap, BTreeSet};

/// How deep an expression may nest: evaluation recurses.
pub(super) const MAX_DEPTH: usize = 48;

/// The reads of an expression: by root, the fields that it names; none where it takes the root as a whole.
pub(super) type Reads = BTreeMap<&'static str, Option<BTreeSet<String>>>;

/// The root of this name.
pub(super) fn root(name: &str) -> Option<&'static str> {
    ROOTS.into_iter().find(|root| *root == name)
}

#[derive(Default)]
pub(super) struct Rewrite {
    pub reads: Reads,
    /// The variables of the loops around.
    bound: Vec<String>,
    depth: usize,
    pub deepest: usize,
    /// The regular expressions that were compiled.
    patterns: u64,
    /// Whether a call that fails whenever it is evaluated is a fault. A flow that was accepted may have one where nothing evaluates it.
    is_strict: bool,
}

/// The cost that a gate in front of an argument charges.
#[derive(Clone, Copy)]
enum Gate {
    Free,
    Touch,
    Look,
    Copy,
}

impl Rewrite {
    /// One to which such a call is a fault.
    pub fn strict() -> Self {
        Self { is_strict: true, ..Self::default() }
    }

    /// Checks and rewrites one expression.
    ///
    /// # Errors
    /// The first fault, in words: a name or function that there is not, a nesting that is too deep, a name that is taken, a text that is no regular expression.
    pub fn visit(&mut self, expr: &mut IdedExpr) -> Result<(), String> {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        if self.depth > MAX_DEPTH {
            return Err(format!("it nests deeper than {MAX_DEPTH} levels: split it over several nodes"));
        }
        match &mut expr.expr {
            Expr::Literal(_) => {}
            Expr::Ident(name) => self.name(name)?,
            Expr::Select(select) => match self.root_of(&select.operand) {
                Some(root) => self.read(root, Some(&select.field)),
                None => self.visit(&mut select.operand)?,
            },
            Expr::Call(call) => self.call(call)?,
            Expr::List(list) => {
                for element in &mut list.elements {
                    self.visit(element)?;
                    gate(element, Gate::Copy);
                }
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(entry) = &mut entry.expr else { return Err("it names a message".into()) };
                    self.visit(&mut entry.key)?;
                    self.visit(&mut entry.value)?;
                    gate(&mut entry.key, Gate::Copy);
                    gate(&mut entry.value, Gate::Copy);
                }
            }
            Expr::Comprehension(comprehension) => {
                self.visit(&mut comprehension.iter_range)?;
                wrap(&mut comprehension.iter_range, ITEMS);
                self.visit(&mut comprehension.accu_init)?;
                let around = self.bound.len();
                for name in [Some(&comprehension.iter_var), comprehension.iter_var2.as_ref()].into_iter().flatten() {
                    if root(name).is_some() {
                        return Err(format!(
                            "{name:?} cannot be the name of a loop's variable: call it something else"
                        ));
                    }
                    self.bound.push(name.clone());
                }
                self.bound.push(comprehension.accu_var.clone());
                self.visit(&mut comprehension.loop_cond)?;
                self.visit(&mut comprehension.loop_step)?;
                self.visit(&mut comprehension.result)?;
                self.bound.truncate(around);
            }
            Expr::Struct(_) => return Err("it names a message; there are only JSON values".into()),
            Expr::Unspecified => return Err("a part of it is missing".into()),
        }
        self.depth -= 1;
        Ok(())
    }

    fn call(&mut self, call: &mut CallExpr) -> Result<(), String> {
        let name = call.func_name.clone();
        if name == operators::INDEX
            && let [of, key] = call.args.as_slice()
            && let Some(root) = self.root_of(of)
            && let Some(key) = text(key)
        {
            self.read(root, Some(&key));
            return Ok(());
        }
        let is_operator = name.contains('_') || name.starts_with('@');
        match catalog::function(&name) {
            None if !is_operator => {
                let known = FUNCTIONS.map(|(name, ..)| name).join(", ");
                return Err(format!("there is no function {name:?}; the functions are: {known}"));
            }
            Some((Side::Macro, example)) => return Err(format!("{name:?} is called in another way: {example}")),
            _ => {}
        }
        if self.is_strict
            && !is_operator
            && let Some(how) = misuse(&name, call.target.is_some(), call.args.len())
        {
            return Err(how);
        }
        // One that is written out. An evaluation compiles no more of them than these.
        if name == "matches"
            && self.patterns < MOST_PATTERNS
            && let Some(pattern) = call.args.last().and_then(text)
        {
            self.patterns += 1;
            compiled_pattern(&pattern)?;
        }
        let gated = match name.as_str() {
            operators::CONDITIONAL | operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => {
                Gate::Free
            }
            operators::INDEX | operators::NOT_STRICTLY_FALSE | operators::NEGATE | operators::SUBSTRACT => Gate::Free,
            operators::MULTIPLY | operators::DIVIDE | operators::MODULO | "type" | "dyn" => Gate::Free,
            "size" => Gate::Touch,
            operators::ADD => Gate::Copy,
            _ if is_operator => Gate::Look,
            _ => Gate::Copy,
        };
        // A loop appends to its accumulator in place, as long as `@result + [item]` stands there as it is. The content of
        // the brackets has been paid for.
        let appends =
            matches!(call.args.first().map(|arg| &arg.expr), Some(Expr::Ident(name)) if name.starts_with('@'));
        let gated = if appends { Gate::Free } else { gated };
        for part in call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args) {
            self.visit(part)?;
            gate(part, gated);
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Result<(), String> {
        if self.bound.iter().any(|bound| bound == name) || TYPES.contains(&name) {
            return Ok(());
        }
        match root(name) {
            Some("outputs") => Err("outputs are read by node, such as outputs.plan".into()),
            Some(root) => {
                self.read(root, None);
                Ok(())
            }
            None => Err(format!("there is no {name:?}; there are: {}", ROOTS.join(", "))),
        }
    }

    fn root_of(&self, expr: &IdedExpr) -> Option<&'static str> {
        let Expr::Ident(name) = &expr.expr else { return None };
        root(name)
    }

    fn read(&mut self, root: &'static str, field: Option<&str>) {
        let fields = self.reads.entry(root).or_insert_with(|| Some(BTreeSet::new()));
        match (fields, field) {
            (Some(fields), Some(field)) => {
                fields.insert(field.into());
            }
            (whole, None) => *whole = None,
            (None, Some(_)) => {}
        }
    }
}

/// The text that an expression is, if it is one.
pub(super) fn text(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().into()),
        _ => None,
    }
}

fn gate(expr: &mut IdedExpr, gate: Gate) {
    let scalar = matches!(&expr.expr, Expr::Literal(literal) if !matches!(literal, LiteralValue::String(_)));
    match gate {
        Gate::Free => {}
        _ if scalar => {}
        Gate::Touch => wrap(expr, TOUCH),
        Gate::Look => wrap(expr, LOOK),
        Gate::Copy => wrap(expr, COPY),
    }
}

fn wrap(expr: &mut IdedExpr, function: &str) {
    let inner = std::mem::take(expr);
    let call = CallExpr { func_name: function.into(), target: None, args: vec![inner] };
    *expr = IdedExpr { id: 0, expr: Expr::Call(call) };
}
