//! The cases, one file a program.

mod alone;
mod bursts;
mod children;
mod counter;
mod crasher;
mod descriptors;
mod echo;
mod editors;
mod events;
mod files;
mod gzip;
mod heap;
mod identity;
mod interpreters;
mod ipc;
mod jumps;
mod mapper;
mod mc;
mod memcached;
mod null;
mod own_ways;
mod pair;
mod python;
mod reader;
mod recursion;
mod redis;
mod replies;
mod rings;
mod screens;
mod security;
mod servers;
mod shell;
mod signals;
mod sqlite;
mod stumble;
mod taking_part;
mod tcp;
mod threads;
mod tmux;
mod unwind;
mod vectors;
mod web;
mod written_pages;
mod xterm;

use crate::case::Case;

/// Every case, in the order in which they run.
pub fn all() -> impl Iterator<Item = &'static Case> {
    let files = [
        counter::CASES,
        reader::CASES,
        redis::CASES,
        memcached::CASES,
        echo::CASES,
        bursts::CASES,
        pair::CASES,
        children::CASES,
        tcp::CASES,
        replies::CASES,
        servers::CASES,
        web::CASES,
        threads::CASES,
        files::CASES,
        descriptors::CASES,
        events::CASES,
        heap::CASES,
        mapper::CASES,
        written_pages::CASES,
        unwind::CASES,
        jumps::CASES,
        recursion::CASES,
        vectors::CASES,
        signals::CASES,
        ipc::CASES,
        null::CASES,
        own_ways::CASES,
        rings::CASES,
        security::CASES,
        identity::CASES,
        stumble::CASES,
        taking_part::CASES,
        crasher::CASES,
        python::CASES,
        interpreters::CASES,
        sqlite::CASES,
        gzip::CASES,
        shell::CASES,
        editors::CASES,
        screens::CASES,
        mc::CASES,
        tmux::CASES,
        xterm::CASES,
        alone::CASES,
    ];
    files.into_iter().flatten()
}
