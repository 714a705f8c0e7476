//! What the journal wants to know of an event: how grave it is, and a number by which its kind is found (`journalctl MESSAGE_ID=…`).

use crate::log::Kind;

impl Kind {
    /// As syslog(3) has it.
    pub fn priority(self) -> u8 {
        match self {
            // Somebody should look at it now.
            Self::Storm => 2,
            Self::GaveUp | Self::EngineError => 3,
            Self::Killed
            | Self::OomKilled
            | Self::Crashed
            | Self::Rollback
            | Self::Hung
            | Self::Starved
            | Self::Leaks
            | Self::WentBack
            | Self::Suspended
            | Self::NotKept
            | Self::ModuleFailed => 4,
            Self::Recovered | Self::Resumed | Self::Degradation | Self::SupervisorRestarted | Self::ModuleChanged => 5,
            _ => 6,
        }
    }

    /// Never changes, for others search by it.
    pub fn message_id(self) -> &'static str {
        match self {
            Self::Start => "789d06614d1fd3974c5648b7535f5b44",
            Self::Injected => "09667b09b1fc0f4248aa0f57fb47345a",
            Self::OomKilled => "3dc7c203f3f3579753820e9e510a0991",
            Self::Killed => "5def981540e5418221c783d1ee3a8f35",
            Self::Recovered => "526bf06ae571fce84c2f365db20cc516",
            Self::Rollback => "b067d2dfcfab7894542b1ab888002aae",
            Self::Crashed => "9d5ee02eafeaa31804a74b66d87b9512",
            Self::Degradation => "994c057d292e8cfef326ad3be017a035",
            Self::Suspended => "48f1bd6ee138f40a997ee79e3e09a8f2",
            Self::Exec => "3906ecf76e5cda51e42f95c1566ac991",
            Self::Resumed => "e5532ea9232f71812d586c9f23118809",
            Self::AnchorRenewed => "e507c7cdae23f31ed832a73eafac0f64",
            Self::GaveUp => "b8a6e135a8aae4476dcb9801b8142d9f",
            Self::Exit => "66ef5709c85ad5e4c2ad8b446b6c2bae",
            Self::PassedOn => "fbb4b4b08755dc9a26f7fecdfb76dbf7",
            Self::SupervisorRestarted => "e066e04900a68509d8db9480f57ce10b",
            Self::SupervisorUpgraded => "d70f0a9d7099a40964d438614a0428e2",
            Self::EngineError => "6bf3eef87788593a39db9c8b4d4b4341",
            Self::WentBack => "01bfcef55a3b0f1d03d637fab6d40fcb",
            Self::NotKept => "92ae4399ba1001ed49bd533d0be2e512",
            Self::ModuleFailed => "c6581b2c2d467e4aa14b6d5ea532dc57",
            Self::ModuleChanged => "5a6f3c0e8d5b4f53a7c4f2a94b1d7e60",
            Self::Starved => "2f138ba76ec46593391def7ee78b72ac",
            Self::ModuleSaid => "28922f9974f80b5f493d85dcc74ee708",
            Self::Hung => "af66485fe2ec9300c7a83569b71dff48",
            Self::Forked => "19bc7cff9f28fe929597002e8f05329f",
            Self::Attached => "44cb80e0d4bbb8c71ee772cd595bbcfa",
            Self::Detached => "ea552691ce89cebc400e8b1b5f5dd419",
            Self::Leaks => "664b903a617a46c2a8092d58917ba520",
            Self::Storm => "cd3b864b7405385e37a723d9dd3e4797",
        }
    }
}
