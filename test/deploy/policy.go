package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

var (
	pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	pod  = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

// Returns a pod as it is after the API server has applied a mutating admission policy to its creation in that
// namespace.
func admitted(policyFile, podFile, namespaceFile string) (runtime.Object, error) {
	policies, err := manifests(policyFile)
	if err != nil {
		return nil, err
	}
	policy, isPolicy := policies[0].(*admissionv1.MutatingAdmissionPolicy)
	if !isPolicy {
		return nil, fmt.Errorf("%s: the first object is a %T", policyFile, policies[0])
	}
	found, err := manifests(podFile)
	if err != nil {
		return nil, err
	}
	object := found[0].(*corev1.Pod)
	namespaces, err := manifests(namespaceFile)
	if err != nil {
		return nil, err
	}
	namespace := namespaces[0].(*corev1.Namespace)
	for _, bound := range policies[1:] {
		binding := bound.(*admissionv1.MutatingAdmissionPolicyBinding)
		isChosen := true
		for _, rules := range []*admissionv1.MatchResources{policy.Spec.MatchConstraints, binding.Spec.MatchResources} {
			matchesPod, err := matches(rules.ObjectSelector, object.Labels)
			if err != nil {
				return nil, err
			}
			matchesNamespace, err := matches(rules.NamespaceSelector, namespace.Labels)
			if err != nil {
				return nil, err
			}
			isChosen = isChosen && matchesPod && matchesNamespace
		}
		if !isChosen {
			continue
		}
		changed, err := mutated(policy, object)
		if err != nil {
			return nil, err
		}
		if object, err = typed(changed); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// Returns a pod as the type that it has in the API: a patch leaves it a map of fields.
func typed(object runtime.Object) (*corev1.Pod, error) {
	if typed, isTyped := object.(*corev1.Pod); isTyped {
		return typed, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	typed := &corev1.Pod{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, typed, true)
	typed.SetGroupVersionKind(pod)
	return typed, err
}

// Returns whether a selector selects something with these labels. The API server gives a rule without a selector the
// empty one, which selects everything.
func matches(selector *metav1.LabelSelector, given labels.Set) (bool, error) {
	if selector == nil {
		return true, nil
	}
	selects, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && selects.Matches(given), err
}

func mutated(policy *admissionv1.MutatingAdmissionPolicy, object *corev1.Pod) (runtime.Object, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, err
	}
	declared := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler.CompileAndStoreVariables(variables(policy), declared, environment.StoredExpressions)
	request := attributes(object)
	if conditions := conditions(policy); len(conditions) > 0 {
		evaluator := compiler.CompileCondition(conditions, declared, environment.StoredExpressions)
		if errs := evaluator.CompilationErrors(); len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
		result := matchconditions.NewMatcher(evaluator, policy.Spec.FailurePolicy, "policy", "mutate", policy.Name).
			Match(compiler.CreateContext(context.Background()), request, nil, nil)
		if result.Error != nil || !result.Matches {
			return object, result.Error
		}
	}
	return patched(policy, compiler, request)
}

func patched(policy *admissionv1.MutatingAdmissionPolicy, compiler *cel.CompositedCompiler,
	request *admission.VersionedAttributes) (runtime.Object, error) {
	declared := cel.OptionalVariableDeclarations{HasAuthorizer: true, HasPatchTypes: true}
	for _, mutation := range policy.Spec.Mutations {
		var patcher patch.Patcher
		switch mutation.PatchType {
		case admissionv1.PatchTypeApplyConfiguration:
			expression := &patch.ApplyConfigurationCondition{Expression: mutation.ApplyConfiguration.Expression}
			patcher = patch.NewApplyConfigurationPatcher(
				compiler.CompileMutatingEvaluator(expression, declared, environment.StoredExpressions))
		case admissionv1.PatchTypeJSONPatch:
			expression := &patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}
			patcher = patch.NewJSONPatcher(
				compiler.CompileMutatingEvaluator(expression, declared, environment.StoredExpressions))
		}
		changed, err := patcher.Patch(compiler.CreateContext(context.Background()), patch.Request{
			MatchedResource:     pods,
			VersionedAttributes: request,
			ObjectInterfaces:    admission.NewObjectInterfacesFromScheme(scheme.Scheme),
			TypeConverter:       applyconfigurations.NewTypeConverter(scheme.Scheme),
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return nil, err
		}
		changed.GetObjectKind().SetGroupVersionKind(pod)
		request.VersionedObject = admission.NewLazyObject(changed)
	}
	return request.VersionedObject.Object(), nil
}

func attributes(object *corev1.Pod) *admission.VersionedAttributes {
	object.SetGroupVersionKind(pod)
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(object, nil, pod, object.Namespace, object.Name, pods, "",
			admission.Create, &metav1.CreateOptions{}, false, nil),
		VersionedKind:      pod,
		VersionedObject:    admission.NewLazyObject(object),
		VersionedOldObject: admission.NewLazyObject(nil),
	}
}

type variable admissionv1.Variable

func (v *variable) GetName() string            { return v.Name }
func (v *variable) GetExpression() string      { return v.Expression }
func (v *variable) ReturnTypes() []*types.Type { return []*types.Type{types.AnyType, types.DynType} }

func variables(policy *admissionv1.MutatingAdmissionPolicy) (accessors []cel.NamedExpressionAccessor) {
	for i := range policy.Spec.Variables {
		accessors = append(accessors, (*variable)(&policy.Spec.Variables[i]))
	}
	return accessors
}

func conditions(policy *admissionv1.MutatingAdmissionPolicy) (accessors []cel.ExpressionAccessor) {
	for i := range policy.Spec.MatchConditions {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	return accessors
}
