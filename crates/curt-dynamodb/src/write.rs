//! Writes and their conditions, as DynamoDB wants them written.

use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put, TransactWriteItem, Update};
use curt_adapter_kit::wide_column::Mark;
use curt_core::PortResult;

use crate::failure::corrupt;
use crate::item::{Attributes, Key, PARTITION, bytes, number};

/// An attribute and its new value; `None` removes it.
pub(crate) type Change = (&'static str, Option<AttributeValue>);

/// A write of one item.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) key: Key,
    pub(crate) kind: WriteKind,
    conditions: Vec<Condition>,
    additions: Vec<(&'static str, i64)>,
}

#[derive(Clone, Debug)]
pub(crate) enum WriteKind {
    /// The whole item, whatever was there.
    Put(Vec<Change>),
    /// Some attributes of it.
    Update(Vec<Change>),
    Delete,
}

/// What must hold for a write. Several must all hold.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// There is no such item.
    Absent,
    /// The item has no such attribute.
    Without(&'static str),
    Equals(&'static str, AttributeValue),
    AtMost(&'static str, AttributeValue),
    Above(&'static str, AttributeValue),
    /// The attribute is not there, or is less.
    AbsentOrBelow(&'static str, AttributeValue),
}

impl Condition {
    /// The attribute has this mark, or is not there.
    pub(crate) fn by_mark(name: &'static str, mark: Option<Mark>) -> Self {
        match mark {
            Some(mark) => Self::Equals(name, bytes(&mark.0)),
            None => Self::Without(name),
        }
    }
}

impl Write {
    pub(crate) fn put(key: Key, attributes: Vec<Change>) -> Self {
        Self::new(key, WriteKind::Put(attributes))
    }

    pub(crate) fn update(key: Key, changes: Vec<Change>) -> Self {
        Self::new(key, WriteKind::Update(changes))
    }

    pub(crate) fn delete(key: Key) -> Self {
        Self::new(key, WriteKind::Delete)
    }

    fn new(key: Key, kind: WriteKind) -> Self {
        Self {
            key,
            kind,
            conditions: Vec::new(),
            additions: Vec::new(),
        }
    }

    /// Adds to a number, which is 0 where it is not there. For updates.
    pub(crate) fn add(mut self, name: &'static str, addition: i64) -> Self {
        self.additions.push((name, addition));
        self
    }

    /// Only if this holds too.
    pub(crate) fn when(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Only if the attribute has this value.
    pub(crate) fn when_equal(self, name: &'static str, value: AttributeValue) -> Self {
        self.when(Condition::Equals(name, value))
    }

    /// The expressions of the write, with its names and values spelt out beside it: many names are reserved.
    pub(crate) fn to_expressions(&self) -> Expressions {
        let mut expressions = Expressions::default();
        expressions.condition = expressions.spell_conditions(&self.conditions);
        if let WriteKind::Update(changes) = &self.kind {
            expressions.update = expressions.spell_changes(changes, &self.additions);
        }
        expressions
    }

    /// The item that a put writes.
    pub(crate) fn to_item(&self) -> Attributes {
        let mut item = self.key.to_attributes();
        if let WriteKind::Put(attributes) = &self.kind {
            let set = attributes.iter().cloned();
            let set = set.filter_map(|(name, value)| Some((name.to_owned(), value?)));
            item.extend(set);
        }
        item
    }

    /// As part of a transaction.
    pub(crate) fn to_transaction(
        &self,
        op: &'static str,
        table: String,
    ) -> PortResult<TransactWriteItem> {
        let Expressions {
            condition,
            update,
            names,
            values,
        } = self.to_expressions();
        let write = TransactWriteItem::builder();
        let write = match &self.kind {
            WriteKind::Put(_) => {
                let put = Put::builder()
                    .table_name(table)
                    .set_item(Some(self.to_item()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values);
                write.put(put.build().map_err(|error| corrupt(op, error))?)
            }
            WriteKind::Update(_) => {
                let update = Update::builder()
                    .table_name(table)
                    .set_key(Some(self.key.to_attributes()))
                    .set_update_expression(update)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values);
                write.update(update.build().map_err(|error| corrupt(op, error))?)
            }
            WriteKind::Delete => {
                let delete = Delete::builder()
                    .table_name(table)
                    .set_key(Some(self.key.to_attributes()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values);
                write.delete(delete.build().map_err(|error| corrupt(op, error))?)
            }
        };
        Ok(write.build())
    }
}

/// Parts of a request. What is empty must be left out of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expressions {
    pub(crate) condition: Option<String>,
    pub(crate) update: Option<String>,
    pub(crate) names: Option<std::collections::HashMap<String, String>>,
    pub(crate) values: Option<Attributes>,
}

impl Expressions {
    fn name(&mut self, name: &str) -> String {
        let names = self.names.get_or_insert_default();
        let place = format!("#n{}", names.len());
        names.insert(place.clone(), name.to_owned());
        place
    }

    fn value(&mut self, value: &AttributeValue) -> String {
        let values = self.values.get_or_insert_default();
        let place = format!(":v{}", values.len());
        values.insert(place.clone(), value.clone());
        place
    }

    fn spell_conditions(&mut self, conditions: &[Condition]) -> Option<String> {
        let mut parts = Vec::new();
        for condition in conditions {
            let mut compare = |name: &str, sign: &str, value: &AttributeValue| {
                format!("{} {sign} {}", self.name(name), self.value(value))
            };
            parts.push(match condition {
                Condition::Equals(name, value) => compare(name, "=", value),
                Condition::AtMost(name, value) => compare(name, "<=", value),
                Condition::Above(name, value) => compare(name, ">", value),
                Condition::AbsentOrBelow(name, value) => {
                    let below = compare(name, "<", value);
                    let name = self.name(name);
                    format!("(attribute_not_exists({name}) OR {below})")
                }
                Condition::Without(name) => format!("attribute_not_exists({})", self.name(name)),
                Condition::Absent => format!("attribute_not_exists({})", self.name(PARTITION)),
            });
        }
        (!parts.is_empty()).then(|| parts.join(" AND "))
    }

    fn spell_changes(
        &mut self,
        changes: &[Change],
        additions: &[(&'static str, i64)],
    ) -> Option<String> {
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        for (name, value) in changes {
            let name = self.name(name);
            match value {
                Some(value) => set.push(format!("{name} = {}", self.value(value))),
                None => remove.push(name),
            }
        }
        let add = additions.iter().map(|(name, addition)| {
            let (name, addition) = (self.name(name), self.value(&number(*addition)));
            format!("{name} {addition}")
        });
        let add: Vec<String> = add.collect();
        let clause = |verb: &str, parts: Vec<String>| match parts.is_empty() {
            true => String::new(),
            false => format!("{verb} {} ", parts.join(", ")),
        };
        Some(clause("SET", set) + &clause("REMOVE", remove) + &clause("ADD", add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::text;

    #[test]
    fn names_and_values_are_never_part_of_an_expression() {
        let write = Write::update(
            Key::item("a".to_owned()),
            vec![("state", Some(number(1))), ("owner", None)],
        )
        .when_equal("state", number(0))
        .when(Condition::Absent)
        .when(Condition::AtMost("name", text("x")));
        let expressions = write.to_expressions();
        assert_eq!(
            expressions.condition.as_deref(),
            Some("#n0 = :v0 AND attribute_not_exists(#n1) AND #n2 <= :v1")
        );
        assert_eq!(
            expressions.update.as_deref(),
            Some("SET #n3 = :v2 REMOVE #n4 ")
        );
        assert_eq!(expressions.names.unwrap()["#n4"], "owner");
        assert_eq!(expressions.values.unwrap()[":v2"], number(1));
    }

    #[test]
    fn a_write_without_conditions_has_no_expression() {
        let write = Write::put(Key::item("a".to_owned()), Vec::new());
        let expressions = write.to_expressions();
        assert!(expressions.condition.is_none() && expressions.names.is_none());
        assert!(expressions.values.is_none());
    }
}
