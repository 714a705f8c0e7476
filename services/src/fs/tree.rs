//! Names of files and folders: what the names of the resources say, in a form in which they are found.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use outlast_glue_rt::{Resources, Stop};

/// The root, which no resource is kept for.
pub const ROOT: u64 = i64::MAX as u64;
const NAME: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub parent: u64,
    pub folder: bool,
    pub name: Vec<u8>,
}

#[derive(Clone, Default)]
pub struct Tree {
    nodes: HashMap<u64, Node>,
    children: HashMap<u64, BTreeMap<Vec<u8>, u64>>,
}

impl Node {
    /// The name of its resource.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.parent.to_le_bytes().to_vec();
        bytes.push(u8::from(self.folder));
        bytes.extend_from_slice(&self.name);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (parent, rest) = bytes.split_first_chunk()?;
        let (folder, name) = rest.split_first()?;
        Some(Self { parent: u64::from_le_bytes(*parent), folder: *folder == 1, name: name.to_vec() })
    }
}

impl Tree {
    pub fn read(resources: &Resources) -> Self {
        let mut tree = Self::default();
        for (inode, name) in resources.all() {
            if let Some(node) = Node::from_bytes(name) {
                tree.put(inode, node);
            }
        }
        tree
    }

    pub fn node(&self, inode: u64) -> Result<&Node, Stop> {
        static TOP: LazyLock<Node> = LazyLock::new(|| Node { parent: ROOT, folder: true, name: Vec::new() });
        match inode {
            ROOT => Ok(&TOP),
            inode => self.nodes.get(&inode).ok_or(Stop::Errno(libc::ESTALE)),
        }
    }

    pub fn child(&self, folder: u64, name: &[u8]) -> Option<u64> {
        match name {
            [] => Some(folder),
            name => self.children.get(&folder)?.get(name).copied(),
        }
    }

    /// Names in a folder, in order, and which are folders.
    pub fn names(&self, folder: u64) -> impl Iterator<Item = (&[u8], bool)> {
        let children = self.children.get(&folder).into_iter().flatten();
        children.map(|(name, inode)| (name.as_slice(), self.nodes.get(inode).is_some_and(|node| node.folder)))
    }

    pub fn is_empty(&self, folder: u64) -> bool {
        self.children.get(&folder).is_none_or(BTreeMap::is_empty)
    }

    /// The folder, which must be there, and a name in it, which need not be. An empty path is `base` itself.
    pub fn resolve<'a>(&self, base: u64, path: &'a [u8]) -> Result<(u64, &'a [u8]), Stop> {
        let folder = |inode: u64| match self.node(inode)?.folder {
            true => Ok(inode),
            false => Err(Stop::Errno(libc::ENOTDIR)),
        };
        let mut at = base;
        let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            if matches!(part, b"." | b"..") || part.contains(&0) {
                return Err(Stop::Errno(libc::EINVAL));
            }
            if part.len() > NAME {
                return Err(Stop::Errno(libc::ENAMETOOLONG));
            }
            folder(at)?;
            if parts.peek().is_none() {
                return Ok((at, part));
            }
            at = self.child(at, part).ok_or(Stop::Errno(libc::ENOENT))?;
        }
        Ok((at, b""))
    }

    /// Whether `inode` is `folder` or below it.
    pub fn within(&self, mut inode: u64, folder: u64) -> bool {
        // No way up is longer than there are folders.
        for _ in 0..=self.nodes.len() {
            match self.nodes.get(&inode) {
                _ if inode == folder => return true,
                Some(node) => inode = node.parent,
                None => return false,
            }
        }
        false
    }

    pub fn put(&mut self, inode: u64, node: Node) {
        self.children.entry(node.parent).or_default().insert(node.name.clone(), inode);
        self.nodes.insert(inode, node);
    }

    pub fn remove(&mut self, inode: u64) {
        if let Some(node) = self.nodes.remove(&inode) {
            if let Some(children) = self.children.get_mut(&node.parent) {
                children.remove(&node.name);
            }
        }
    }
}
