// Package echo has the servers that stand in for images: one that says who
// answered, one with a static page, and the parts of agnhost that manifests use.
package echo
