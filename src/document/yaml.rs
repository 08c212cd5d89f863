//! YAML, by the events of `saphyr-parser`, with the meaning `PyYAML` gives to plain scalars.

mod advice;
mod scalar;

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::source::{Source, too_deep};
use super::{DocumentError, Key, Kind, MAX_DEPTH, Node, Position, path};

/// The most nodes a document may come to once its aliases are followed.
const MAX_NODES: usize = 200_000;

/// The most bytes of text that aliases may repeat.
const MAX_REPEATED: usize = 4 << 20;

pub(super) fn parse(source: &Source) -> Result<Node, DocumentError> {
    let events = Parser::new_from_str(source.text());
    Builder { source, events, anchors: HashMap::new(), nodes: 0, repeated: 0, depth: 0 }.document()
}

struct Builder<'a> {
    source: &'a Source,
    events: Parser<'a, StrInput<'a>>,
    /// What each anchor stands for; nothing yet while its own node is being built.
    anchors: HashMap<usize, Node>,
    nodes: usize,
    repeated: usize,
    depth: usize,
}

/// A key of a mapping before merging.
enum Name {
    /// An ordinary one.
    Key(Key),
    /// `<<`: the entries of the value belong to the mapping itself.
    Merge,
}

impl<'a> Builder<'a> {
    fn document(&mut self) -> Result<Node, DocumentError> {
        let mut root = None;
        loop {
            let (event, position) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(self.error(position, "the file holds more than one document"));
                }
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
                event => root = Some(self.node(event, position)?),
            }
        }
        Ok(root.unwrap_or_else(|| Node::new(self.source.position(0), Kind::Null)))
    }

    fn next(&mut self) -> Result<(Event<'a>, Position), DocumentError> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, self.position(span.start))),
            Some(Err(error)) => Err(self.scan_error(&error)),
            None => Ok((Event::StreamEnd, self.source.position(0))),
        }
    }

    fn node(&mut self, event: Event<'a>, position: Position) -> Result<Node, DocumentError> {
        self.count(1, position)?;
        let (anchor, kind) = match event {
            Event::Alias(anchor) => return self.alias(anchor, position),
            Event::Scalar(text, style, anchor, tag) => {
                let kind = scalar::resolve(&text, style, tag.as_deref());
                (anchor, kind.map_err(|message| self.error(position, message))?)
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", position)?;
                (anchor, self.nested(position, Self::sequence)?)
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", position)?;
                (anchor, self.nested(position, Self::mapping)?)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(self.error(position, "a value is missing here")),
        };
        let node = Node::new(position, kind);
        if anchor != 0 {
            // The copy counts as well: anchors within anchors would each keep all that is in them.
            self.count_copy(&node, position)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn nested(
        &mut self,
        position: Position,
        build: fn(&mut Self) -> Result<Kind, DocumentError>,
    ) -> Result<Kind, DocumentError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(position, too_deep()));
        }
        let kind = build(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn alias(&mut self, anchor: usize, position: Position) -> Result<Node, DocumentError> {
        let Some(node) = self.anchors.remove(&anchor) else {
            return Err(self.error(position, "an alias cannot stand within what it refers to"));
        };
        if self.depth + node.depth() > MAX_DEPTH {
            return Err(self.error(position, too_deep()));
        }
        self.count_copy(&node, position)?;
        self.anchors.insert(anchor, node.clone());
        Ok(node)
    }

    fn sequence(&mut self) -> Result<Kind, DocumentError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Kind::Sequence(items)),
                (event, position) => {
                    let item = self.node(event, position);
                    let place = || path::index("", items.len());
                    let item = item.map_err(|error| error.under(&place()))?;
                    items.push(item);
                }
            }
        }
    }

    fn mapping(&mut self) -> Result<Kind, DocumentError> {
        let mut own: Vec<(Key, Node)> = Vec::new();
        let mut seen = HashMap::new();
        let mut merged: Vec<(Key, Node)> = Vec::new();
        loop {
            let (event, position) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let name = self.name(event, position)?;
            let value = self.next().and_then(|(event, position)| self.node(event, position));
            let value = value.map_err(|error| match &name {
                Name::Merge => error,
                Name::Key(key) => error.under(&path::key("", &key.text)),
            })?;
            match name {
                Name::Merge => merged.extend(self.merge(value)?),
                Name::Key(key) => {
                    if let Some(first) = seen.insert(key.text.clone(), key.position) {
                        return Err(self.source.duplicate(key.position, &key.text, first));
                    }
                    own.push((key, value));
                }
            }
        }
        Ok(Kind::Mapping(combine(merged, own)))
    }

    fn name(&mut self, event: Event<'a>, position: Position) -> Result<Name, DocumentError> {
        self.count(1, position)?;
        match event {
            Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<" => Ok(Name::Merge),
            Event::Scalar(text, _, anchor, _) => {
                let text = text.into_owned();
                if anchor != 0 {
                    let node = Node::new(position, Kind::String(text.clone()));
                    self.anchors.insert(anchor, node);
                }
                Ok(Name::Key(Key { text, position }))
            }
            Event::Alias(anchor) => match self.alias(anchor, position)?.kind {
                Kind::String(text) => Ok(Name::Key(Key { text, position })),
                _ => Err(self.error(position, "a key is a text")),
            },
            _ => Err(self.error(position, "a key is a text")),
        }
    }

    /// Returns the entries that `<<: value` brings in; of a list, an earlier mapping wins.
    fn merge(&self, value: Node) -> Result<Vec<(Key, Node)>, DocumentError> {
        let position = value.position;
        let refused = || self.error(position, "`<<` merges a mapping or a list of mappings");
        let mut entries = Vec::new();
        match value.kind {
            Kind::Mapping(own) => entries = own,
            Kind::Sequence(items) => {
                for item in items {
                    let Kind::Mapping(own) = item.kind else {
                        return Err(refused());
                    };
                    entries.extend(own);
                }
            }
            _ => return Err(refused()),
        }
        Ok(entries)
    }

    fn check_tag(
        &self,
        tag: Option<&Tag>,
        allowed: &str,
        position: Position,
    ) -> Result<(), DocumentError> {
        match tag {
            None => Ok(()),
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == allowed => Ok(()),
            Some(tag) => Err(self.error(position, scalar::unknown_tag(tag))),
        }
    }

    /// Counts nodes against the limit that keeps a few aliases from filling the memory.
    fn count(&mut self, nodes: usize, position: Position) -> Result<(), DocumentError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err(self.error(position, format!("the document has over {MAX_NODES} values")));
        }
        Ok(())
    }

    /// Counts what a copy of a node takes, before it is made.
    fn count_copy(&mut self, node: &Node, position: Position) -> Result<(), DocumentError> {
        self.count(node.size(), position)?;
        // A long text is one node only.
        self.repeated = self.repeated.saturating_add(node.text_bytes());
        if self.repeated > MAX_REPEATED {
            let message = format!("aliases repeat over {MAX_REPEATED} bytes of text");
            return Err(self.error(position, message));
        }
        Ok(())
    }

    fn position(&self, marker: Marker) -> Position {
        self.source.counted(marker.line(), marker.col() + 1)
    }

    fn error(&self, position: Position, message: impl Into<String>) -> DocumentError {
        self.source.error(position, message)
    }

    fn scan_error(&self, error: &ScanError) -> DocumentError {
        let message = error.info();
        let advice = advice::on(message);
        self.error(self.position(*error.marker()), message.to_owned()).with_hint(advice)
    }
}

/// Puts merged entries before a mapping's own, which win over them.
fn combine(mut merged: Vec<(Key, Node)>, own: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
    let mut seen: HashSet<String> = own.iter().map(|(key, _)| key.text.clone()).collect();
    merged.retain(|(key, _)| seen.insert(key.text.clone()));
    merged.extend(own);
    merged
}
