package control

import (
	"encoding/json"
	"fmt"

	"github.com/perseus-energy/perseus/internal/campaign"
	"github.com/perseus-energy/perseus/internal/watch"
)

// Parts returns what is saved apart from the job, by name; changed ones only.
func (j *Job) Parts() (map[string][]byte, error) {
	out := map[string][]byte{}
	if j.campaignChanged {
		b, err := json.Marshal(j.Campaign)
		if err != nil {
			return nil, fmt.Errorf("saving the campaign: %w", err)
		}
		out["campaign"] = b
	}
	if j.detectorChanged {
		b, err := json.Marshal(j.Detector)
		if err != nil {
			return nil, fmt.Errorf("saving the detector: %w", err)
		}
		out["detector"] = b
	}
	if j.lastChanged {
		b, err := json.Marshal(j.Last)
		if err != nil {
			return nil, fmt.Errorf("saving what ranks reported last: %w", err)
		}
		out["last"] = b
	}
	j.campaignChanged, j.detectorChanged, j.lastChanged = false, false, false
	return out, nil
}

// LoadParts sets what Parts returned; part returns nil for what was never saved.
func (j *Job) LoadParts(part func(name string) ([]byte, error)) error {
	var texts [3][]byte
	for i, name := range []string{"campaign", "detector", "last"} {
		text, err := part(name)
		if err != nil {
			return fmt.Errorf("loading part %s: %w", name, err)
		}
		texts[i] = text
	}
	campaignJSON, detectorJSON, lastJSON := texts[0], texts[1], texts[2]
	if lastJSON != nil {
		if err := json.Unmarshal(lastJSON, &j.Last); err != nil {
			return fmt.Errorf("loading what ranks reported last: %w", err)
		}
	}
	if campaignJSON != nil {
		j.Campaign = new(campaign.Campaign)
		if err := json.Unmarshal(campaignJSON, &j.Campaign); err != nil {
			return fmt.Errorf("loading the campaign: %w", err)
		}
	}
	if detectorJSON != nil {
		j.Detector = new(watch.Detector)
		if err := json.Unmarshal(detectorJSON, &j.Detector); err != nil {
			return fmt.Errorf("loading the detector: %w", err)
		}
	}
	return nil
}
