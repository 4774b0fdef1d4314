// Decodes profiles with OpenTelemetry's own decoders and writes them as protobuf, so that two
// encodings of one message can be compared: pdata json|proto < MESSAGE. Unknown JSON fields are
// errors.
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

func decode(kind string, data []byte) (pprofile.Profiles, error) {
	switch kind {
	case "json":
		return (&pprofile.JSONUnmarshaler{DisallowUnknownFields: true}).UnmarshalProfiles(data)
	case "proto":
		return (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
	}
	return pprofile.Profiles{}, fmt.Errorf("%s is neither json nor proto", kind)
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: pdata json|proto < MESSAGE")
	}
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	profiles, err := decode(os.Args[1], data)
	if err != nil {
		log.Fatal(err)
	}
	message, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(profiles)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(message); err != nil {
		log.Fatal(err)
	}
}
