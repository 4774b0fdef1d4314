/* Has the code that compilers make of C++: virtual functions, templates, closures, exceptions,
 * inlined code of the library. */
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
struct Shape {
    virtual ~Shape() = default;
    virtual double area(double k) const = 0;
};
struct Circle : Shape {
    double r;
    explicit Circle(double r) : r(r) {
    }
    double area(double k) const override {
        return r * r * 3.14 * k;
    }
};
struct Box : Shape {
    double a, b;
    Box(double a, double b) : a(a), b(b) {
    }
    double area(double k) const override {
        return a * b + k;
    }
};
struct Group : Shape {
    std::vector<std::unique_ptr<Shape>> all;
    double area(double k) const override {
        double s = 0;
        for (auto &x : all)
            s += x->area(k);
        return s;
    }
};
static int risky(int i) {
    if (i % 7 == 0)
        throw std::runtime_error("seven " + std::to_string(i));
    return i;
}
int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    double total = 0;
    for (int r = 0; r < rounds; r++) {
        std::map<std::string, std::vector<int>> m;
        for (int i = 0; i < 400; i++)
            m["key" + std::to_string(i * 37 % 101)].push_back(i);
        for (auto &e : m) {
            std::sort(e.second.begin(), e.second.end(), [](int a, int b) { return a > b; });
            total += e.second.front();
        }
        auto g = std::make_unique<Group>();
        for (int i = 0; i < 50; i++) {
            if (i % 2)
                g->all.push_back(std::make_unique<Circle>(i));
            else
                g->all.push_back(std::make_unique<Box>(i, 2));
        }
        for (int i = 0; i < 20; i++)
            total += g->area(i);
        std::regex word("([a-z]+)([0-9]*)");
        std::string text = "abc12 def 77 ghi9";
        std::smatch match;
        while (std::regex_search(text, match, word)) {
            total += match.length();
            text = match.suffix();
        }
        for (int i = 0; i < 20; i++)
            try {
                total += risky(i);
            } catch (const std::exception &e) {
                total += e.what()[0];
            }
        std::ostringstream out;
        for (int i = 0; i < 50; i++)
            out << i << ":" << i * 1.5 << ",";
        total += out.str().size();
        std::function<int(int)> fib = [&](int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); };
        total += fib(12);
    }
    std::cout << (total > 0) << "\n";
}
