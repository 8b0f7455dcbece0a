{{- define "gatehouse.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 52 characters, so that the longest suffix fits into the name of a Service. */}}
{{- define "gatehouse.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "gatehouse.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "gatehouse.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: {{ include "gatehouse.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "gatehouse.labels" -}}
{{ include "gatehouse.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
The metadata of an object: its name, and where they differ from the release's its namespace ("" for objects of the cluster), labels
and annotations. What one object has counts before what all have.
*/}}
{{- define "gatehouse.metadata" -}}
name: {{ .name | quote }}
{{- with hasKey . "namespace" | ternary .namespace .root.Release.Namespace }}
namespace: {{ . | quote }}
{{- end }}
labels:
  {{- include "gatehouse.labels" .root | nindent 2 }}
  {{- with include "gatehouse.moreLabels" . }}
  {{- . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* More labels beside those of the chart, which must stay. */}}
{{- define "gatehouse.moreLabels" -}}
{{- $own := include "gatehouse.labels" .root | fromYaml -}}
{{- $more := merge (dict) (.labels | default dict) .root.Values.commonLabels -}}
{{- range $label, $_ := $more -}}
{{- if hasKey $own $label -}}
{{- fail (printf "labels: %s is set by the chart, and selectors or Helm go by it; take it out of commonLabels, podLabels or the labels of an object" $label) -}}
{{- end -}}
{{- end -}}
{{- if $more -}}{{- toYaml $more -}}{{- end -}}
{{- end -}}

{{- define "gatehouse.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "gatehouse.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* As the host of an address: IPv6 in brackets, which the value may have or not. */}}
{{- define "gatehouse.listenHost" -}}
{{- $address := .Values.listenAddress | trimPrefix "[" | trimSuffix "]" -}}
{{- ternary (printf "[%s]" $address) $address (contains ":" $address) -}}
{{- end -}}

{{/* The proxies that are believed, as JSON. An ingress that nobody names makes one address of all clients, and one lock for all of them. */}}
{{- define "gatehouse.trustedProxies" -}}
{{- $chosen := not (kindIs "invalid" .Values.trustedProxies) -}}
{{- range $at := list "ingress" "httpRoute" -}}
{{- if and (not $chosen) (get $.Values $at).enabled -}}
{{- fail (printf "trustedProxies: %s.enabled puts a proxy in front; give its addresses or ranges, such as [10.0.0.0/8], or [] to believe nobody (then all clients share one address, and failed logins of one lock all)" $at) -}}
{{- end -}}
{{- end -}}
{{- if and (not $chosen) (hasPrefix "https://" .Values.url) (eq .Values.tls.secretName "") -}}
{{- fail "trustedProxies: url is https and tls.secretName is empty, so an ingress or a load balancer is in front; give its addresses or ranges, such as [10.0.0.0/8], or [] to believe nobody (then all clients share one address, and failed logins of one lock all)" -}}
{{- end -}}
{{- .Values.trustedProxies | default list | toJson -}}
{{- end -}}

{{/* Several replicas need a database that they share, and one key that they all seal with. The least number where it is scaled. */}}
{{- define "gatehouse.replicas" -}}
{{- $shared := ne .Values.database.secretName "" -}}
{{- $replicas := .Values.replicas | default (ternary 2 1 $shared) | int -}}
{{- with .Values.autoscaling -}}
{{- if .enabled -}}
{{- if not $shared -}}
{{- fail "autoscaling.enabled: the embedded database serves one replica; name a PostgreSQL in database.secretName" -}}
{{- end -}}
{{- if $.Values.replicas -}}
{{- fail "replicas: the autoscaler decides how many there are; set autoscaling.minReplicas and maxReplicas, and leave replicas null" -}}
{{- end -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail (printf "autoscaling.minReplicas: %d is more than maxReplicas, which is %d" (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- if and .targetCPUUtilizationPercentage (not (dig "requests" "cpu" "" $.Values.resources)) -}}
{{- fail "autoscaling.targetCPUUtilizationPercentage: it is a share of resources.requests.cpu, which is not set" -}}
{{- end -}}
{{- if not (or .targetCPUUtilizationPercentage .metrics) -}}
{{- fail "autoscaling.metrics: there is nothing to scale by; set targetCPUUtilizationPercentage, or metrics" -}}
{{- end -}}
{{- $replicas = int .minReplicas -}}
{{- end -}}
{{- end -}}
{{- if and (gt $replicas 1) (not $shared) -}}
{{- fail "replicas: the embedded database serves one replica; name a PostgreSQL in database.secretName" -}}
{{- end -}}
{{- if and $shared (eq .Values.secretKey.secretName "") -}}
{{- fail "secretKey.secretName: replicas that share a database share GATEHOUSE_SECRET_KEY too; make a Secret with 32 random bytes in base64" -}}
{{- end -}}
{{- $replicas -}}
{{- end -}}

{{/* How pods are spread, as YAML: as given, and by default over nodes where possible. */}}
{{- define "gatehouse.spread" -}}
{{- $own := dict "matchLabels" (include "gatehouse.selector" . | fromYaml) -}}
{{- $nodes := dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway" -}}
{{- $spread := list -}}
{{- range kindIs "invalid" .Values.topologySpreadConstraints | ternary (list $nodes) .Values.topologySpreadConstraints -}}
{{- $spread = append $spread (hasKey . "labelSelector" | ternary . (merge (dict "labelSelector" $own) .)) -}}
{{- end -}}
{{- toYaml $spread -}}
{{- end -}}

{{/* The hosts that reach the public listener, as YAML: the given ones, otherwise that of url and of issuers that are served here. */}}
{{- define "gatehouse.hosts" -}}
{{- $hosts := .given -}}
{{- if not $hosts -}}
{{- with .root.Values.url }}{{ $hosts = append $hosts (urlParse .).hostname }}{{ end -}}
{{- range .root.Values.sts.endpoints -}}
{{- if .host_in_openunison }}{{ $hosts = append $hosts .issuer.host }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if not $hosts -}}
{{- fail (printf "%s: neither it nor url says by which host clients reach the gateway" .at) -}}
{{- end -}}
{{- toYaml (uniq $hosts) -}}
{{- end -}}

{{- define "gatehouse.servicePort" -}}
{{- .Values.service.port | default (ternary 443 80 (ne .Values.tls.secretName "")) -}}
{{- end -}}

{{/* The processes of a replica; empty for one. */}}
{{- define "gatehouse.workers" -}}
{{- $workers := toString .Values.workers -}}
{{- if ne $workers "1" -}}
{{- if eq .Values.database.secretName "" -}}
{{- fail "workers: the embedded database serves one process; name a PostgreSQL in database.secretName" -}}
{{- end -}}
{{- $workers -}}
{{- end -}}
{{- end -}}

{{/* "true" where an endpoint injects, so that the webhook is wanted. */}}
{{- define "gatehouse.injects" -}}
{{- $found := "" -}}
{{- range .Values.sts.endpoints -}}{{- if .injector -}}{{- $found = "true" -}}{{- end -}}{{- end -}}
{{- if .Values.webhook.enabled -}}{{- $found -}}{{- end -}}
{{- end -}}

{{/* "true" where an endpoint honors TokenGrants of the cluster. */}}
{{- define "gatehouse.honorsGrants" -}}
{{- $found := "" -}}
{{- range .Values.sts.endpoints -}}{{- if .grants -}}{{- $found = "true" -}}{{- end -}}{{- end -}}
{{- if .Values.cluster.target -}}{{- $found -}}{{- end -}}
{{- end -}}

{{/* "true" where Gatehouse makes the webhook's certificate, and so writes the configuration that tells its authority. */}}
{{- define "gatehouse.writesWebhook" -}}
{{- $given := dig "injector" "webhook" dict .Values.sts -}}
{{- if not (or $given.secretName $given.certFile) -}}{{- include "gatehouse.injects" . -}}{{- end -}}
{{- end -}}

{{/* Objects of the cluster have no namespace, so their names have it. */}}
{{- define "gatehouse.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "gatehouse.fullname" .) -}}
{{- end -}}

{{/* What is in a namespace of others has the release's namespace in its name, since several releases may have one there. */}}
{{- define "gatehouse.monitoringName" -}}
{{- $root := index . 0 -}}
{{- $elsewhere := index . 1 | default $root.Release.Namespace | ne $root.Release.Namespace -}}
{{- ternary (include "gatehouse.clusterName" $root) (include "gatehouse.fullname" $root) $elsewhere -}}
{{- end -}}

{{/* Secrets by name: those of secretParams, and the key pairs of endpoints, which are made where there is none. */}}
{{- define "gatehouse.mountedSecrets" -}}
{{- $secrets := list -}}
{{- $named := .Values.config.secrets -}}
{{- with dig "injector" "webhook" "secretName" "" .Values.sts }}{{ $named = append $named . }}{{ end -}}
{{- range $named | uniq -}}
{{- $secrets = append $secrets (dict "name" . "optional" false) -}}
{{- end -}}
{{- range .Values.sts.endpoints -}}
{{- $pair := .issuer.keypair | default .name -}}
{{- if and (not (has $pair $named)) (regexMatch "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" $pair) -}}
{{- $secrets = append $secrets (dict "name" $pair "optional" true) -}}
{{- end -}}
{{- end -}}
{{- toYaml ($secrets | uniq) -}}
{{- end -}}

{{/* The kinds of configuration that are read from the cluster. */}}
{{- define "gatehouse.kinds" -}}
- applications
- auditanchors
- auditsinks
- authchains
- authmechs
- customazs
- directoryinserts
- groupmetadatas
- javascriptmappings
- javascripts
- namespacegroupmetadatas
- notifiers
- orgs
- oujobs
- portalurls
- reconciliations
- reports
- resourcetypes
- resultgroups
- targets
- trusts
- workflows
{{- end -}}

{{/* All places that documents are published to, as YAML, each with where in the values it is. */}}
{{- define "gatehouse.places" -}}
{{- $places := list -}}
{{- if .Values.sts.endpoints -}}
{{- range $i, $place := .Values.sts.publish -}}
{{- $places = append $places (merge (dict "at" (printf "sts.publish[%d]" $i)) $place) -}}
{{- end -}}
{{- range $e, $endpoint := .Values.sts.endpoints -}}
{{- range $i, $place := $endpoint.publish -}}
{{- $places = append $places (merge (dict "at" (printf "sts.endpoints[%d].publish[%d]" $e $i)) $place) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $places -}}
{{- end -}}

{{/* The mount that a folder is below, as the values name it; empty where there is none. */}}
{{- define "gatehouse.mountOf" -}}
{{- $folder := .folder -}}
{{- $found := "" -}}
{{- range .root.Values.extraVolumeMounts -}}
{{- $path := trimSuffix "/" .mountPath -}}
{{- if or (eq $path $folder) (hasPrefix (printf "%s/" $path) $folder) -}}{{- $found = .name -}}{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}

{{/* Prints nothing, and fails where documents could not be published or would be seen by nobody. */}}
{{- define "gatehouse.checkPlaces" -}}
{{- $connected := lookup "v1" "Namespace" "" "kube-system" -}}
{{- range include "gatehouse.places" . | fromYamlArray -}}
{{- if eq .type "folder" -}}
{{- $folder := ternary .folder (printf "/data/%s" .folder) (hasPrefix "/" .folder) -}}
{{- $kept := and (hasPrefix "/data/" $folder) (eq $.Values.database.secretName "") -}}
{{- if not (or $kept (include "gatehouse.mountOf" (dict "root" $ "folder" $folder))) -}}
{{- fail (printf "%s.folder: %s is on no volume that outlives the pod and that a web server could share; mount one there with extraVolumes and extraVolumeMounts, or publish to a place of the type s3 or configmap" .at $folder) -}}
{{- end -}}
{{- else if and (eq .type "configmap") (eq .target $.Values.cluster.target) -}}
{{- $absent := and $connected (ne .namespace $.Release.Namespace) (not $.Values.publishing.createNamespaces) (not (lookup "v1" "Namespace" "" .namespace)) -}}
{{- if $absent -}}
{{- fail (printf "%s.namespace: there is no namespace %s; create it, or set publishing.createNamespaces" .at .namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* ConfigMaps of this cluster that documents are published to, by namespace. */}}
{{- define "gatehouse.publishedConfigMaps" -}}
{{- $places := include "gatehouse.places" . | fromYamlArray -}}
{{- $byNamespace := dict -}}
{{- range $places -}}
{{- if and (eq .type "configmap") (eq .target $.Values.cluster.target) -}}
{{- $_ := set $byNamespace .namespace (append (get $byNamespace .namespace | default list) .name) -}}
{{- end -}}
{{- end -}}
{{- $roles := list -}}
{{- range $namespace, $names := $byNamespace -}}
{{- $roles = append $roles (dict "namespace" $namespace "names" (uniq $names)) -}}
{{- end -}}
{{- toYaml $roles -}}
{{- end -}}
