// Package applet decides which of its programs a multi-call binary becomes.
package applet
