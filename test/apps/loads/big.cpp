#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
#include "gate" // a FIFO: the compiler stops here
template <int N> struct deep {
    static int value() { return N + deep<N - 1>::value(); }
};
template <> struct deep<0> {
    static int value() { return 0; }
};
int main(int argc, char **argv) {
    std::map<std::string, std::vector<int>> all;
    std::unordered_map<std::string, std::function<int(int)>> calls;
    calls["x"] = [&](int x) { return x + argc; };
    for (int i = 0; i < argc; i++)
        all[argv[i]].push_back(calls["x"](i) + deep<200>::value());
    std::regex word("[a-z]+(b|c)*");
    for (auto &entry : all)
        if (std::regex_match(entry.first, word))
            std::cout << entry.first << entry.second.size();
    return 0;
}
