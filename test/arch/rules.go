package arch

// Rule is one agreement about the tree.
type Rule struct {
	Name   string
	Check  func(*Tree) []Finding
	WayOut string // what to do about a finding
}

// Rules lists every rule.
func Rules() []Rule {
	return []Rule{
		{
			"imports point down", importsPointDown,
			"the direction is api, discovery, controller, hub and agent, cmd: move what both sides need to the lower one",
		},
		{
			"api stands alone", apiStandsAlone,
			"api/ imports the standard library, k8s.io/api and k8s.io/apimachinery only: move behaviour to internal/",
		},
		{
			"the core is pure", coreIsPure,
			"internal/discovery and each plan.go compute: take time and objects as fields, read in observe.go, write in apply.go",
		},
		{
			"black-box tests stay outside", blackBox,
			"test/e2e, test/bench and test/chaos see what a user sees, through kubeconfigs: use api/ and client-go, or test inside internal/",
		},
		{
			"one package writes", onePackageWrites,
			"write through internal/apply, which skips equal objects and sets the field manager; or extend it",
		},
		{
			"controllers have the same files", controllerFiles,
			"name the file by what it does: " + controllerFileList() + "; shared code goes to a package of its own",
		},
		{
			"controllers say what they touch", controllerDocs,
			"write doc.go with a paragraph for each of Watches, Reads, Writes, Owns and Fails",
		},
		{
			"names say something", speakingNames,
			"name the package or file by the thing that it provides",
		},
		{
			"main is thin", thinMain,
			"move the work to internal/ (or sandbox/internal/), where it can be tested",
		},
		{
			"files and functions are short", shortFilesAndFunctions,
			"split by concern; a function of several steps becomes one function for each step",
		},
		{
			"signatures are short", shortSignatures,
			"more than five parameters become an Options struct, more than three results a struct",
		},
		{
			"no init functions", noInit,
			"call a constructor or AddToScheme from main",
		},
		{
			"no context in a struct", noContextInStruct,
			"pass ctx as the first parameter of each method",
		},
		{
			"no sleep", noSleep,
			"wait for the event itself, or poll with a timer and a context; tests may sleep inside synctest.Test",
		},
		{
			"no forks", noForks,
			"replace a module only by a published version of itself",
		},
		{
			"waivers are rare", rareWaivers,
			"fix the finding, or change .golangci.yml when the linter is wrong for us",
		},
		{
			"text is for everyone", textForEveryone,
			"write a path relative to the root, and nothing about how or where the text was written",
		},
	}
}
