// Makes an index of the words in all text files of some folders, and corrects rare ones. `make
// demo` profiles it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

namespace text {

struct place {
    std::string file;
    int line;
};
using index = std::map<std::string, std::vector<place>>;

std::vector<std::string> words_of(const std::string &line) {
    static const std::regex word("[A-Za-z_]{4,}");
    std::vector<std::string> words;
    for (std::sregex_iterator at(line.begin(), line.end(), word), end; at != end; ++at)
        words.push_back(at->str());
    return words;
}

void add_file(index &words, const std::filesystem::path &path) {
    std::ifstream file(path);
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        for (const auto &word : words_of(line))
            words[word].push_back({path.string(), number});
    }
}

bool is_text(const std::filesystem::path &path) {
    static const std::vector<std::string> endings = {".md", ".c", ".h", ".py", ".js"};
    return std::find(endings.begin(), endings.end(), path.extension()) != endings.end();
}

index index_of(const std::vector<std::filesystem::path> &folders) {
    index words;
    for (const auto &folder : folders)
        for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
            if (is_text(entry.path()))
                add_file(words, entry.path());
    return words;
}

} // namespace text

namespace spelling {

// Returns how many letters of one word are to be changed, added or removed to make the other.
int edits_between(const std::string &one, const std::string &other) {
    std::vector<int> before(other.size() + 1), row(other.size() + 1);
    std::iota(before.begin(), before.end(), 0);
    for (size_t i = 0; i < one.size(); ++i) {
        row[0] = int(i) + 1;
        for (size_t j = 0; j < other.size(); ++j)
            row[j + 1] =
                std::min({before[j] + (one[i] != other[j]), before[j + 1] + 1, row[j] + 1});
        std::swap(before, row);
    }
    return before.back();
}

std::string nearest(const std::vector<std::string> &known, const std::string &word) {
    return *std::min_element(known.begin(), known.end(),
                             [&word](const std::string &one, const std::string &other) {
                                 return edits_between(word, one) < edits_between(word, other);
                             });
}

const size_t FREQUENT = 50, MOST_CORRECTED = 800;

// Returns the word in frequent use that each of the rare ones may have been meant to be.
std::map<std::string, std::string> corrections(const text::index &words) {
    std::vector<std::string> known, rare;
    for (const auto &[word, places] : words)
        if (places.size() >= FREQUENT)
            known.push_back(word);
        else if (places.size() == 1 && rare.size() < MOST_CORRECTED)
            rare.push_back(word);
    std::map<std::string, std::string> corrected;
    for (const auto &word : rare)
        corrected[word] = nearest(known, word);
    return corrected;
}

} // namespace spelling

int main(int count, char **arguments) {
    static const text::index words = text::index_of({arguments + 1, arguments + count});
    static const auto corrected = spelling::corrections(words);
    std::cout << words.size() << " words, " << corrected.size() << " rare ones corrected\n";
}
