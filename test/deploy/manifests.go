package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Returns the output of `kustomize build` for a folder.
func built(folder string) ([]runtime.Object, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	text, err := resources.AsYaml()
	if err != nil {
		return nil, err
	}
	return decoded(text)
}

// Returns the objects of a file: a field that the API does not know, or that has another type, is an error.
func manifests(file string) ([]runtime.Object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return decoded(text)
}

func decoded(text []byte) (objects []runtime.Object, err error) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// Returns why the pod security standard "restricted" refuses a Deployment's pods, or a pod; nothing: they are
// admitted.
func restricted(file string) (reasons []string, err error) {
	objects, err := manifests(file)
	if err != nil {
		return nil, err
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	reasons = []string{}
	for _, object := range objects {
		meta, spec, err := podOf(object)
		if err != nil {
			return nil, err
		}
		standard := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		for _, result := range evaluator.EvaluatePod(standard, meta, spec) {
			if !result.Allowed {
				reasons = append(reasons, result.ForbiddenReason+": "+result.ForbiddenDetail)
			}
		}
	}
	return reasons, nil
}

func podOf(object runtime.Object) (*metav1.ObjectMeta, *corev1.PodSpec, error) {
	switch it := object.(type) {
	case *appsv1.Deployment:
		return &it.Spec.Template.ObjectMeta, &it.Spec.Template.Spec, nil
	case *corev1.Pod:
		return &it.ObjectMeta, &it.Spec, nil
	}
	return nil, nil, fmt.Errorf("%T has no pods", object)
}
