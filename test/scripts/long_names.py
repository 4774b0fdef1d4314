"""Gives 30 names of 200 to 5,000 letters, as compilers of C++, Rust, Java and Python make them."""

from otelprof_lib.names import short_name

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
WIDE = "std::__cxx11::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >"


def vector(of):
    return f"std::vector<{of}, std::allocator<{of}> >"


def ordered(key, value):
    return f"std::map<{key}, {value}, std::less<{key} >, std::allocator<std::pair<{key} const, {value} > > >"


VARIANT = f"std::variant<int, double, {STRING}, {vector(STRING)}, {vector('unsigned long')} >"
TREE = ordered(STRING, VARIANT)
FOREST = ordered("int", ordered(STRING, TREE))
RUST = "core::iter::adapters::map::Map<core::iter::adapters::filter::Filter<alloc::vec::into_iter::IntoIter<(alloc::string::String, u64)>, closure#0>, closure#1>"
JAVA = "com.example.enterprise.order.processing.infrastructure.persistence.hibernate"

# by whole name: what has to stay readable, in the graph's frame, the list, the footer and a terminal's table
NAMES = {
    f"wrapper<{TREE}, {STRING}>::apply_transformation_to_every_element": "wrapper<\u2026>::apply_transformation_to_every_element",
    f"wrap<{FOREST}>::apply": "wrap<\u2026>::apply",
    f"{TREE}::operator[]": "std::map<\u2026>::operator[]",
    f"{FOREST}::find": "std::map<\u2026>::find",
    f"std::_Rb_tree<{STRING}, std::pair<{STRING} const, {VARIANT} > >::_M_insert_unique": "std::_Rb_tree<\u2026>::_M_insert_unique",
    f"std::function<void ({TREE} const&)>::operator()": "std::function<\u2026>::operator()",
    f"std::operator<< <char, std::char_traits<char>, {VARIANT} >": "std::operator<< <\u2026>",
    f"bool operator< <{STRING}, {TREE} >": "bool operator< <\u2026>",
    f"{vector(STRING)}::_M_realloc_insert<{STRING} const&, {VARIANT} const&, {STRING} >":
        "std::vector<std::string>::_M_realloc_insert<\u2026>",
    f"{vector(WIDE)}::emplace_back<{WIDE}, {WIDE}, {WIDE} >": "std::vector<std::wstring>::emplace_back<std::wstring, std::wstring, std::wstring>",
    f"(anonymous namespace)::visit<{VARIANT}, {TREE} >": "(anonymous namespace)::visit<\u2026>",
    f"run<{TREE} >(int, {STRING} const&, {TREE} const&)": "run<\u2026>(\u2026)",
    f"std::__detail::_Map_base<{STRING}, std::pair<{STRING} const, int>, std::hash<{STRING} >, std::equal_to<{STRING} > >::at":
        "std::__detail::_Map_base<\u2026>::at",
    f"std::unique_ptr<{TREE}, std::default_delete<{TREE} > >::~unique_ptr": "std::unique_ptr<\u2026>::~unique_ptr",
    f"std::basic_ostream<char, std::char_traits<char> >& std::__ostream_insert<char, std::char_traits<char>, {TREE} >":
        "std::ostream& std::__ostream_insert<\u2026>",
    f"boost::spirit::qi::rule<{TREE}, {VARIANT} >::parse<{STRING}, {TREE} >": "boost::spirit::qi::rule<\u2026>::parse<\u2026>",
    f"Eigen::internal::call_dense_assignment_loop<Eigen::Matrix<double, -1, -1, 0, -1, -1>, {', '.join(['Eigen::Product<Eigen::Matrix<float, 4, 4> >'] * 9)} >::run":
        "Eigen::internal::call_dense_assignment_loop<\u2026>::run",
    f"apply<{', '.join(['Layer<float, 128>'] * 240)}>::forward": "apply<\u2026>::forward",
    f"{'outer::' * 40}inner": None,
    f"{RUST} as core::iter::traits::iterator::Iterator>::next": None,
    f"<{RUST} as core::iter::traits::iterator::Iterator>::fold::<{RUST}>": "<\u2026>::fold::<\u2026>",
    f"tokio::runtime::task::harness::Harness<{RUST}, {RUST}>::poll": "tokio::runtime::task::harness::Harness<\u2026>::poll",
    f"core::ptr::drop_in_place<(usize, std::fs::File, {RUST})>": "core::ptr::drop_in_place<\u2026>",
    f"{JAVA}.OrderRepositoryImplementationFactoryBean.{'findAllOrdersOfCustomer' * 5}WithPendingPayments": None,
    f"{JAVA}.{'AbstractSingletonProxyFactoryBean.' * 5}invoke(java.lang.Object, java.lang.reflect.Method, java.lang.Object[])": None,
    f"{JAVA}.Handler$$Lambda$1234/0x0000000800c3e840.accept({', '.join(['java.lang.String'] * 20)})": None,
    f"service.{'handlers.' * 30}OrderHandler.process_pending_orders": None,
    f"app.{'very_long_function_name_' * 12}of_a_generated_client": None,
    f"{'a' * 300}_is_the_end": None,
    f"unbalanced<{'<' * 1900}{'(' * 1900}": None,
}
assert len(NAMES) == 30 and all(200 <= len(name) <= 5000 for name in NAMES), [len(name) for name in NAMES]
SHORT = {name: short or short_name(name) for name, short in NAMES.items()}


def named(message):
    """Returns an export of a program whose functions have these names."""
    stacks = {(f"app!{name}", "app!main"): 100 - place for place, name in enumerate(NAMES)}
    return message().profile("samples", "count", 10_000_000, stacks)
