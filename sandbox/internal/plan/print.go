package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// File is one file that `up` writes before the first process starts.
type File struct {
	Path, What string
}

// Files lists what `up` writes, by path.
func (p *Plan) Files() []File {
	var files []File
	add := func(path, format string, args ...any) {
		files = append(files, File{Path: path, What: fmt.Sprintf(format, args...)})
	}
	for _, a := range p.Authorities {
		add(a.Path, "certificate of authority %s", a.Name)
	}
	for _, c := range p.Certificates {
		subject := c.CommonName
		if c.Organization != "" {
			subject += " in " + c.Organization
		}
		if len(c.Hosts) > 0 {
			subject += " for " + strings.Join(c.Hosts, ", ")
		}
		add(c.cert(), "certificate by %s: %s", c.Authority, subject)
		add(c.key(), "its key")
	}
	for _, k := range p.SigningKeys {
		add(k.private(), "key that signs service account tokens")
		add(k.public(), "its public half")
	}
	for _, k := range p.Kubeconfigs {
		var contexts []string
		for _, c := range k.Contexts {
			contexts = append(contexts, c.Name+" at "+c.Server)
		}
		add(k.Path, "kubeconfig: %s", strings.Join(contexts, ", "))
	}
	for _, t := range p.Texts {
		add(t.Path, "%s", t.What)
	}
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

// Print writes the plan for a person to read. Commands are ready to be pasted.
func (p *Plan) Print(w io.Writer) error {
	var b strings.Builder
	b.WriteString("FILES\n")
	for _, f := range p.Files() {
		fmt.Fprintf(&b, "  %s  (%s)\n", f.Path, f.What)
	}
	b.WriteString("\nRELAY\n")
	for _, l := range p.Links {
		fmt.Fprintf(&b, "  %s  %s -> %s\n", l.Member, l.Listen, l.Target)
	}
	printNetwork(&b, p.Network)
	b.WriteString("\nPROCESSES\n")
	for _, c := range p.Components {
		printComponent(&b, c)
	}
	for _, s := range p.Install {
		printStep(&b, s)
	}
	for _, c := range p.Manager {
		printComponent(&b, c)
	}
	for _, s := range p.Joins {
		printStep(&b, s)
	}
	for _, pull := range p.Pulls {
		for _, s := range pull.Register {
			printStep(&b, s)
		}
		printComponent(&b, pull.Agent)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printNetwork(b *strings.Builder, n *Network) {
	if n == nil {
		return
	}
	fmt.Fprintf(b, "\nNETWORK\n  %s  bridge between nodes\n", n.Fabric)
	for _, m := range n.Members {
		fmt.Fprintf(b, "  %s  node of %s at %s, %s on the fabric; %s and %s; pods %s, %s; 127.0.0.1:%d leads to its API server\n",
			m.Node, m.Name, m.Fabric4, m.Fabric6, m.Node4, m.Node6, m.Pods4, m.Pods6, m.APIPort)
		fmt.Fprintf(b, "  %s  client of %s at %s, %s\n", m.Client, m.Name, m.ClientAddresses().V4, m.ClientAddresses().V6)
	}
}

func printComponent(b *strings.Builder, c Component) {
	fmt.Fprintf(b, "  %s", c.Name)
	if len(c.Needs) > 0 {
		fmt.Fprintf(b, "  after %s", strings.Join(c.Needs, ", "))
	}
	fmt.Fprintf(b, "\n    log %s\n    ready when %s answers", c.Log, c.Ready.URL)
	if c.Ready.Namespace != "" {
		fmt.Fprintf(b, " in %s", c.Ready.Namespace)
	}
	b.WriteByte('\n')
	printCommand(b, c.Argv)
}

func printStep(b *strings.Builder, s Step) {
	fmt.Fprintf(b, "  %s  once\n    log %s\n", s.Name, s.Log)
	printCommand(b, s.Argv)
}

func printCommand(b *strings.Builder, argv []string) {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = quote(word)
	}
	fmt.Fprintf(b, "    %s\n", strings.Join(words, " \\\n      "))
}

// quote makes a word safe for a shell.
func quote(word string) string {
	const special = " \t\n\"'`$&|;<>()*?[]{}\\!#~"
	if word != "" && !strings.ContainsAny(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
