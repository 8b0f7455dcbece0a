{{/*
The sts block as Gatehouse reads it. Of the predecessor's block, the image of its sidecar and the name of its own object mean
nothing here, and explicit_certificate_trust may stand in the injector of an endpoint.
*/}}
{{- define "gatehouse.sts" -}}
{{- $root := . -}}
{{- $endpoints := list -}}
{{- range $i, $given := .Values.sts.endpoints -}}
{{- if not (or $given.azRules $given.grants) -}}
{{- fail (printf "sts.endpoints[%d].azRules: endpoint %q has no rule, so nobody would get a token; say who may have one, or which grants count" $i (toString $given.name)) -}}
{{- end -}}
{{- $endpoint := omit $given "injector" -}}
{{- with $given.injector -}}
{{- if and (hasKey . "explicit_certificate_trust") (not (hasKey $given "explicit_certificate_trust")) -}}
{{- $_ := set $endpoint "explicit_certificate_trust" .explicit_certificate_trust -}}
{{- end -}}
{{- $_ := set $endpoint "injector" (omit . "explicit_certificate_trust") -}}
{{- end -}}
{{- $endpoints = append $endpoints $endpoint -}}
{{- end -}}
{{- $sts := omit .Values.sts "image" "openunison" "endpoints" "injector" -}}
{{- $_ := set $sts "endpoints" $endpoints -}}
{{- if include "gatehouse.injects" . -}}
{{- $_ := set $sts "injector" (include "gatehouse.injector" . | fromYaml) -}}
{{- end -}}
{{- toYaml (dict "sts" $sts) -}}
{{- end -}}

{{/*
Sidecars reach the token service by its Service unless told otherwise, and only by https. The API server reaches the webhook by
a Service of its own, with a certificate that Gatehouse makes unless one is given.
*/}}
{{- define "gatehouse.injector" -}}
{{- $given := .Values.sts.injector | default dict -}}
{{- if and (not $given.tokenService) (eq .Values.tls.secretName "") -}}
{{- fail "sts.injector.tokenService: sidecars need an https address of the token service; give it, or tls.secretName" -}}
{{- end -}}
{{- $name := include "gatehouse.fullname" . -}}
{{- $webhook := dict "listen" (printf "%s:%d" (include "gatehouse.listenHost" .) (int .Values.webhook.port)) -}}
{{- if include "gatehouse.writesWebhook" . -}}
{{- $_ := set $webhook "service" (dict "namespace" .Release.Namespace "name" (printf "%s-webhook" $name) "port" 443) -}}
{{- $_ := set $webhook "configuration" (include "gatehouse.clusterName" .) -}}
{{- with .Values.cluster.target }}{{ $_ := set $webhook "cluster" . }}{{ end -}}
{{- end -}}
{{- $service := printf "https://%s.%s.svc" $name .Release.Namespace -}}
{{- toYaml (merge (dict) $given (dict "tokenService" $service "webhook" $webhook)) -}}
{{- end -}}

{{/* Values, and what the token service needs, as the files of a configuration folder. */}}
{{- define "gatehouse.files" -}}
{{- $files := dict -}}
{{- if .Values.config.values -}}
{{- $_ := set $files "values.yaml" (toYaml .Values.config.values) -}}
{{- end -}}
{{- if .Values.sts.endpoints -}}
{{- $_ := set $files "sts.yaml" (include "gatehouse.sts" .) -}}
{{- with .Values.cluster.target -}}
{{- $_ := set $files "cluster.yaml" (include "gatehouse.cluster" $) -}}
{{- end -}}
{{- end -}}
{{- toYaml $files -}}
{{- end -}}

{{- define "gatehouse.cluster" -}}
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata:
  name: {{ .Values.cluster.target }}
spec:
  className: targets.Kubernetes
  params:
    - name: inCluster
      value: "true"
{{- end -}}
