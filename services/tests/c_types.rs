//! Every type of an interface, bytes and open files, between a client and a component in C that is killed.

#[path = "support/c.rs"]
mod c;
mod support;
#[path = "support/watched.rs"]
mod watched;

use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

use outlast_glue_rt::System;
use support::start_program;
use watched::watch;

const TYPES: [&str; 33] = [
    "char",
    "signed char",
    "unsigned char",
    "short",
    "short int",
    "unsigned short",
    "unsigned short int",
    "int",
    "signed int",
    "signed",
    "unsigned",
    "unsigned int",
    "long",
    "long int",
    "signed long",
    "unsigned long",
    "unsigned long int",
    "long long",
    "unsigned long long",
    "size_t",
    "ssize_t",
    "intptr_t",
    "uintptr_t",
    "int8_t",
    "uint8_t",
    "int16_t",
    "uint16_t",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "tag_t",
    "unknown_t",
];

const INTERFACE: &str = "service_global_info = { service = every, desc_close_self_only = true, \
    desc_dep_create_none = true, desc_has_data = true };\ntypedef unsigned short tag_t;\nsm_creation(every_make);\n\
    desc_data_retval(unsigned long, every) every_make(const char *desc_data(name), int size_of(name, length));\n\
    int every_name(unsigned long desc(every), char *ret(name), int size_of(name, most));\n\
    int every_back(unsigned long desc(every), const unsigned char *data, unsigned int size_of(data, length), \
    unsigned char *ret(back), long size_of(back, most));\n\
    int every_file(unsigned long desc(every), fd_t *ret(file));\n\
    int every_lent(unsigned long desc(every), buffer_t buffer, unsigned int half);\n\
    int every_wrong(unsigned long desc(every), int how, char *ret(bytes), unsigned int size_of(bytes, most));\n";

const SERVICE: &str = "#define _GNU_SOURCE
#include \"every_server.h\"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static struct { char text[100]; int length; } names[100];
static unsigned long last;
int serve_every_make(struct glue_call *call, const char *name, int length, unsigned long *every) {
    (void)call;
    if (length > 100 || last == 99) { return ENOSPC; }
    *every = ++last;
    memcpy(names[last].text, name, (size_t)length);
    names[last].length = length;
    return 0;
}
int serve_every_name(struct glue_call *call, unsigned long every, char *name, size_t *length, int most, int *result) {
    (void)call;
    *length = (size_t)(most < names[every].length ? most : names[every].length);
    memcpy(name, names[every].text, *length);
    *result = names[every].length;
    return 0;
}
int serve_every_back(struct glue_call *call, unsigned long every, const unsigned char *data, unsigned int length,
    unsigned char *back, size_t *count, long most, int *result) {
    (void)call, (void)every;
    for (*count = 0; *count < length && *count < (size_t)most; ++*count) { back[*count] = data[length - 1 - *count]; }
    *result = (int)length;
    return 0;
}
int serve_every_file(struct glue_call *call, unsigned long every, int *file, int *result) {
    int ends[2];
    (void)call, (void)every, (void)result;
    if (pipe(ends) != 0) { return errno; }
    *file = ends[0];
    if (write(ends[1], \"text\", 4) != 4) { return EIO; }
    close(ends[1]);
    return 0;
}
int serve_every_lent(struct glue_call *call, unsigned long every, uint32_t buffer, unsigned int half, int *result) {
    static unsigned char there[GLUE_BUFFER], back[GLUE_BUFFER];
    (void)every;
    int stop = half > GLUE_BUFFER ? EINVAL : glue_lent_read(call, buffer, 0, there, half);
    if (stop != 0) { return stop; }
    for (unsigned int at = 0; at < half; at++) { back[at] = there[half - 1 - at]; }
    *result = (int)half;
    return glue_lent_write(call, buffer, half, back, half);
}
int serve_every_wrong(struct glue_call *call, unsigned long every, int how, char *bytes, size_t *length,
    unsigned int most, int *result) {
    (void)call, (void)every, (void)bytes, (void)result;
    switch (how) {
    case 0: abort();
    case 1: *length = most + 1; return 0;
    case 2: return -EBUSY;
    case 3: return -123456789;
    default: return 123456789;
    }
}
int main(void) { return glue_run(&every_service) != 0; }
";

const CLIENT: &str = "#include \"every_client.h\"
#include \"must.h\"
#include <errno.h>
#include <string.h>
#include <unistd.h>
static struct every_client client;
static unsigned long every;
static void expect(const char *what, int right) {
    if (!right) { fprintf(stderr, \"%s: wrong\\n\", what); exit(1); }
}
static void back(size_t length, long most, int expected) {
    unsigned char data[GLUE_BYTES + 1], there[GLUE_BYTES];
    size_t count = 7, wanted = most < 0 ? 0 : (size_t)most < length ? (size_t)most : length;
    int result = -1, error;
    for (size_t at = 0; at < length; at++) { data[at] = (unsigned char)(at * 7); }
    error = call_every_back(&client, every, data, (unsigned int)length, there, &count, most, &result);
    expect(\"error\", error == expected);
    if (error != 0) { return; }
    expect(\"lengths\", count == wanted && result == (int)length);
    for (size_t at = 0; at < count; at++) { expect(\"bytes\", there[at] == data[length - 1 - at]); }
}
static void wrong(void) {
    const int expected[] = { GLUE_POISONOUS, GLUE_POISONOUS, 16, 123456789, 123456789 };
    for (int how = 0; how < 5; how++) {
        char bytes[10];
        expect(\"wrong\", call_every_wrong(&client, every, how, bytes, NULL, 10, NULL) == expected[how]);
        must(\"name\", call_every_name(&client, every, NULL, NULL, 10, NULL));
    }
}
static void lent(struct glue_channel *channel) {
    enum { HALF = GLUE_BUFFER / 2 };
    static unsigned char here[HALF], there[HALF];
    int error = 1, result = -1;
    struct glue_buffer *buffers[64], *one = glue_buffer_new(channel, &error);
    uint32_t number = glue_buffer_number(one);
    for (int at = 0; at < HALF; at++) { here[at] = (unsigned char)(at * 11); }
    must(\"lend\", glue_buffer_write(one, 0, here, HALF));
    must(\"lent\", call_every_lent(&client, every, number, HALF, &result));
    must(\"back\", glue_buffer_read(one, HALF, there, HALF));
    expect(\"lent\", result == HALF);
    for (int at = 0; at < HALF; at++) { expect(\"lent bytes\", there[at] == here[HALF - 1 - at]); }
    expect(\"outside\", call_every_lent(&client, every, number, HALF + 1, NULL) == EINVAL);
    expect(\"outside\", glue_buffer_write(one, HALF + 1, here, HALF) == GLUE_TOO_LONG);
    glue_buffer_end(one);
    expect(\"given back\", call_every_lent(&client, every, number, 1, NULL) == GLUE_REFUSED(EINVAL));
    expect(\"none\", call_every_lent(&client, every, 64, 1, NULL) == GLUE_REFUSED(EINVAL));
    for (int at = 0; at < 64; at++) { buffers[at] = glue_buffer_new(channel, &error); expect(\"one left\", buffers[at] != NULL); }
    expect(\"all taken\", glue_buffer_new(channel, &error) == NULL && error == GLUE_NO_BUFFER);
    for (int at = 0; at < 64; at++) { glue_buffer_end(buffers[at]); }
}
static void files(void) {
    for (int at = 0; at < 1500; at++) {
        int file = -1;
        char text[5] = { 0 };
        must(\"file\", call_every_file(&client, every, at % 2 == 0 ? &file : NULL, NULL));
        if (at % 2 == 0) {
            expect(\"file\", read(file, text, 5) == 4 && strcmp(text, \"text\") == 0);
            close(file);
        }
    }
}
";

fn main_of_the_client(checks: &str) -> String {
    format!(
        "int main(int count, char *arguments[]) {{
    (void)arguments;
    struct glue_channel *channel = granted(\"every\");
    char name[10];
    size_t length;
    int result;
    every_client_open(&client, channel);
    expect(\"long\", call_every_make(&client, \"\", GLUE_BYTES + 1, &every) == GLUE_TOO_LONG);
    expect(\"negative\", call_every_make(&client, \"\", -1, &every) == GLUE_TOO_LONG);
    must(\"make\", call_every_make(&client, \"a name\", 6, &every));
    for (int round = 0; round < 20; round++) {{
{checks}
        back(0, 0, 0); back(1, 1, 0); back(GLUE_BYTES, GLUE_BYTES, 0); back(GLUE_BYTES, 100, 0); back(100, -1, 0);
        back(GLUE_BYTES, 1000000000000, 0); back(GLUE_BYTES + 1, 1, GLUE_TOO_LONG);
        must(\"name\", call_every_name(&client, every, name, &length, 10, &result));
        expect(\"name\", length == 6 && result == 6 && memcmp(name, \"a name\", 6) == 0);
        must(\"name\", call_every_name(&client, every, NULL, NULL, 10, NULL));
        lent(channel);
    }}
    files();
    if (count > 1) {{ wrong(); }}
    every_client_close(&client);
    glue_channel_close(channel);
    return 0;
}}
"
    )
}

#[test]
fn every_value_of_every_type_is_the_same_on_the_other_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut interface, mut service, mut client, mut checks) =
        (INTERFACE.to_string(), SERVICE.to_string(), CLIENT.to_string(), String::new());
    for (at, ty) in TYPES.iter().enumerate() {
        writeln!(interface, "{ty} every_{at}(unsigned long desc(every), {ty} value, {ty} *ret(other));").expect("text");
        writeln!(
            service,
            "int serve_every_{at}(struct glue_call *call, unsigned long every, {ty} value, {ty} *other, {ty} *result) {{
    (void)call, (void)every; *other = ({ty})~value; *result = value; return 0; }}"
        )
        .expect("text");
        writeln!(
            client,
            "static void check_{at}(void) {{
    const unsigned long long high = 1ull << (sizeof({ty}) * 8 - 1);
    const {ty} all[] = {{ 0, 1, ({ty})-1, ({ty})high, ({ty})(high - 1), ({ty})42 }};
    for (size_t at = 0; at < sizeof all / sizeof *all; at++) {{
        const {ty} flipped = ({ty})~all[at];
        {ty} other, result;
        must(\"{ty}\", call_every_{at}(&client, every, all[at], &other, &result));
        expect(\"{ty}\", result == all[at] && other == flipped);
    }}
}}"
        )
        .expect("text");
        writeln!(checks, "        check_{at}();").expect("text");
    }
    client.push_str(&main_of_the_client(&checks));
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file
    };
    c::stubs(&file("every.glue", &interface), &[], folder.path());
    let includes = format!("-I{}/c", env!("CARGO_MANIFEST_DIR"));
    let built = |name: &str, text: &str| {
        let (source, output) = (file(&format!("{name}.c"), text), folder.path().join(name));
        let stub = folder.path().join(format!("every_{name}.c"));
        c::compile("gcc", &[&includes], folder.path(), &[&source, &stub], &output);
        output
    };
    let (component, program) = (built("server", &service), built("client", &client));
    let mut kills = 0;
    while kills < 15 {
        let mut system = System::new();
        let handle = start_program(&mut system, "every", &component, &[]);
        let ended = watch(&handle, &["every"], Command::new(&program), Duration::from_secs(120));
        assert_eq!(ended.success, Some(true), "{ended:?}");
        kills += ended.kills;
    }
    println!("{kills} kills");
    // A service that ends itself, writes too much or returns nonsense harms the caller alone.
    let mut system = System::new();
    let handle = start_program(&mut system, "every", &component, &[]);
    let mut command = Command::new(&program);
    command.arg("wrong");
    handle.grant().expect("a channel").pass(&mut command, "every");
    let said = command.output().expect("the client");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(handle.deaths().0 >= 24, "twelve each");
}

#[test]
fn a_manager_in_c_starts_components_and_programs_and_is_told_of_mistakes() {
    let folder = tempfile::tempdir().expect("a folder");
    let manager = folder.path().join("manager");
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("c/manager.c");
    c::compile("clang", &[], folder.path(), &[&source], &manager);
    let contenders = c::client("contenders", "lock", None);
    let said = Command::new(manager)
        .args([env!("CARGO_BIN_EXE_outlast-service").as_ref(), "lock".as_ref(), contenders.program.as_os_str()])
        .args(["4", "50"])
        .output()
        .expect("the manager");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(String::from_utf8_lossy(&said.stdout), "400\n");
}
