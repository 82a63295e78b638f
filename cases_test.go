package namesake_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// casesTable lists what shows each case.
const casesTable = "docs/cases.md"

var (
	caseRow  = regexp.MustCompile(`(?m)^\| C(\d+) \|[^|]*\|([^|]*)\|$`)
	caseTest = regexp.MustCompile("`([^`]+)\\.(Test\\w+)(?:/([^`]+))?`")
)

// TestCases checks that the table of cases lists every case that has to be shown,
// and no test that does not exist.
func TestCases(t *testing.T) {
	table, err := os.ReadFile(casesTable)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[int]bool{}
	for _, row := range caseRow.FindAllStringSubmatch(string(table), -1) {
		number, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		if rows[number] {
			t.Errorf("%s has two rows for C%d", casesTable, number)
		}
		rows[number] = true
		tests := caseTest.FindAllStringSubmatch(row[2], -1)
		if len(tests) == 0 || len(tests) != strings.Count(row[2], "`")/2 {
			t.Errorf("C%d: cannot read the tests in %q", number, row[2])
		}
		for _, test := range tests {
			if err := findTest(test[1], test[2], test[3]); err != nil {
				t.Errorf("C%d: %v", number, err)
			}
		}
	}
	for number := 1; number <= 35; number++ {
		if !rows[number] {
			t.Errorf("%s has no row for C%d", casesTable, number)
		}
	}
}

// TestReliability checks that the page on failures names no test that does not
// exist.
func TestReliability(t *testing.T) {
	page, err := os.ReadFile("docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := caseTest.FindAllStringSubmatch(string(page), -1)
	if len(tests) == 0 {
		t.Fatal("it names no test at all")
	}
	for _, test := range tests {
		if err := findTest(test[1], test[2], test[3]); err != nil {
			t.Error(err)
		}
	}
}

// findTest looks for a test, and for a subtest of that name, in the files of a
// package.
func findTest(dir, test, subtest string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), "\nfunc "+test+"(t *testing.T) {") {
			continue
		}
		if subtest != "" && !strings.Contains(string(text), strconv.Quote(subtest)) {
			return fmt.Errorf("%s in %s has no subtest %s", test, dir, subtest)
		}
		return nil
	}
	return fmt.Errorf("%s has no %s", dir, test)
}
