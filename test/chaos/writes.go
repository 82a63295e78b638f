package chaos

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

var (
	requestTotal = regexp.MustCompile(`(?m)^apiserver_request_total\{(.*)\} (\S+)$`)
	metricLabel  = regexp.MustCompile(`(\w+)="([^"]*)"`)
	writingVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
)

// inMembers are the resources that the hub writes in members. Others are written
// there by the members' own controllers, whenever they like.
var inMembers = []string{"endpointslices", "services", "namespaces"}

// writes counts the writes that every API server of the fleet has got since it
// started, by kind. Leases are left out.
func (r *round) writes(ctx context.Context) (map[string]float64, error) {
	out := map[string]float64{}
	for _, c := range r.f.clusters() {
		text, err := c.rest.Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading metrics of %s: %w", c.name, err)
		}
		for _, line := range requestTotal.FindAllStringSubmatch(string(text), -1) {
			label := map[string]string{}
			for _, l := range metricLabel.FindAllStringSubmatch(line[1], -1) {
				label[l[1]] = l[2]
			}
			if label["resource"] == "leases" || !slices.Contains(writingVerbs, label["verb"]) ||
				c != r.f.hub && !slices.Contains(inMembers, label["resource"]) {
				continue
			}
			count, err := strconv.ParseFloat(line[2], 64)
			if err != nil {
				return nil, fmt.Errorf("reading metrics of %s: %w", c.name, err)
			}
			out[fmt.Sprintf("%s %s %s/%s (%s)", c.name, label["verb"], label["resource"], label["subresource"], label["code"])] += count
		}
	}
	return out, nil
}
