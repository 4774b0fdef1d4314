// Links samples to spans in Rust, without a crate: rustc -g -O spans.rs
use std::ffi::{c_void, CString};
use std::os::raw::{c_char, c_uint};

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The profiler's functions, if it is preloaded.
#[derive(Clone, Copy)]
struct Profiler {
    span_set: extern "C" fn(*const u8, *const u8),
    label_push: extern "C" fn(*const c_char, *const c_char) -> c_uint,
    label_pop_to: extern "C" fn(c_uint),
}

impl Profiler {
    fn find() -> Option<Profiler> {
        let find = |name: &str| unsafe {
            let name = CString::new(name).unwrap();
            let found = dlsym(std::ptr::null_mut(), name.as_ptr()); // RTLD_DEFAULT
            if found.is_null() { None } else { Some(found) }
        };
        unsafe {
            Some(Profiler {
                span_set: std::mem::transmute(find("otelprof_span_set")?),
                label_push: std::mem::transmute(find("otelprof_label_push")?),
                label_pop_to: std::mem::transmute(find("otelprof_label_pop_to")?),
            })
        }
    }
}

/// The thread works for a span as long as this lives.
struct SpanScope(Option<(Profiler, c_uint)>);

impl SpanScope {
    fn new(profiler: Option<Profiler>, trace_id: &[u8; 16], span_id: &[u8; 8], route: &str) -> Self {
        SpanScope(profiler.map(|p| {
            let route = CString::new(route).unwrap();
            (p.span_set)(trace_id.as_ptr(), span_id.as_ptr());
            (p, (p.label_push)(b"http.route\0".as_ptr().cast(), route.as_ptr()))
        }))
    }
}

impl Drop for SpanScope {
    fn drop(&mut self) {
        if let Some((p, labels)) = self.0 {
            (p.label_pop_to)(labels);
            (p.span_set)(std::ptr::null(), std::ptr::null());
        }
    }
}

#[inline(never)]
#[no_mangle]
fn resize_image() -> u64 {
    (0..500_000_000).fold(0, |sum, i| sum ^ unsafe { std::ptr::read_volatile(&i) })
}

#[inline(never)]
#[no_mangle]
fn write_report() -> u64 {
    (0..500_000_000).fold(1, |sum, i| sum ^ unsafe { std::ptr::read_volatile(&i) })
}

fn main() {
    let profiler = Profiler::find();
    let trace_id = 0x4bf92f3577b34da6a3ce929d0e0e4736_u128.to_be_bytes();
    {
        let _scope = SpanScope::new(profiler, &trace_id, &[1; 8], "/images");
        resize_image();
    }
    let _scope = SpanScope::new(profiler, &trace_id, &[2; 8], "/reports");
    write_report();
}
