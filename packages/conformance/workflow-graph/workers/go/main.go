// A careless worker: every request carries a JSON content type, also the heartbeat, whose body is empty; no status is ever
// looked at; no log is sent. Whatever object a claim answers is taken for a job, so an error object would end the program.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"time"
)

const (
	leaseSeconds = 60
	beatEvery    = 10 * time.Second
	pollEvery    = 2 * time.Second
)

type object = map[string]any

func main() {
	name := "careless-go-" + randomName()
	labels := []string{"go"}
	send("/workers/register", object{"worker_id": name, "labels": labels})
	for {
		claim := send("/jobs/claim", object{"worker_id": name, "labels": labels, "lease_ttl_secs": leaseSeconds})
		if claim == nil {
			time.Sleep(pollEvery)
			continue
		}
		work(claim["job"].(object), claim["lease"].(object)["lease_id"].(string))
	}
}

func work(job object, lease string) {
	over := make(chan struct{})
	go beat(lease, over)
	output, err := exec.Command("sh", "-c", job["command"].(string)).CombinedOutput()
	close(over)
	if err != nil {
		send("/jobs/"+lease+"/fail", object{"error": string(output), "retryable": true})
		return
	}
	send("/jobs/"+lease+"/complete", object{"outputs": object{}})
}

func beat(lease string, over <-chan struct{}) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
			send("/jobs/"+lease+"/heartbeat", nil)
		}
	}
}

// Sends a value as JSON, or nothing for nil, and answers the object that came back, or nil for anything else.
func send(path string, value object) object {
	var body bytes.Buffer
	if value != nil {
		_ = json.NewEncoder(&body).Encode(value)
	}
	response, err := http.Post(serverURL()+"/api"+path, "application/json", &body)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var answer object
	_ = json.NewDecoder(response.Body).Decode(&answer)
	return answer
}

func randomName() string {
	letters := make([]byte, 3)
	_, _ = rand.Read(letters)
	return hex.EncodeToString(letters)
}

func serverURL() string {
	if url := os.Getenv("SERVER_URL"); url != "" {
		return url
	}
	return "http://localhost:3000"
}
