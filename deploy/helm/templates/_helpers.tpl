{{/* Of this release, or of one of `worker.builds`: (dict "root" $ "build" …). */}}
{{- define "pfqs.image" -}}
{{- $own := include "pfqs.build" .root }}
{{- with .root.Values.image.digest }}{{ $own = printf "%s@%s" $own . }}{{ end }}
{{- .root.Values.image.repository }}:{{ .build | default $own }}
{{- end }}

{{- define "pfqs.build" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Labels of one component, which its selectors use too: (dict "root" $ "component" "api"). */}}
{{- define "pfqs.selector" -}}
{{- if contains "." .root.Release.Name }}{{ fail "a release with a dot in its name has no service: choose another name" }}{{ end }}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "pfqs.labels" -}}
{{ include "pfqs.selector" . }}
{{- /* A tag may be longer than a label, and end otherwise. */}}
app.kubernetes.io/version: {{ .build | default (include "pfqs.build" .root) | splitList "@" | first | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "pfqs.env" -}}
{{- range $name, $value := . }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- end }}

{{/* How a client reaches Temporal. */}}
{{- define "pfqs.temporal.client" -}}
- { name: TEMPORAL_ADDRESS, value: {{ .Values.temporal.address | quote }} }
- { name: TEMPORAL_NAMESPACE, value: {{ .Values.temporal.namespace | quote }} }
{{- include "pfqs.temporal.tls" . }}
{{- end }}

{{- define "pfqs.temporal.tls" -}}
{{- with .Values.temporal.tlsServerName }}
- { name: TEMPORAL_TLS_SERVER_NAME, value: {{ . | quote }} }
{{- end }}
{{- if .Values.temporal.tlsSecretName }}
- { name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /run/temporal/ca.pem }
- { name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /run/temporal/cert.pem }
- { name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /run/temporal/key.pem }
{{- end }}
{{- end }}

{{/* A rule of a network policy, where there are peers. */}}
{{- define "pfqs.rule" -}}
{{- if .peers }}
- {{ .side }}: {{ toJson .peers }}
  ports: [{ protocol: TCP, port: {{ .port }} }]
{{- end }}
{{- end }}

{{/* Authorities that the component trusts, each in a folder of its own: (dict "root" $ "component" …). One of a store must not vouch for a partner. */}}
{{- define "pfqs.authorities" -}}
{{- $authorities := .root.Values.authorities }}
{{- $names := list "stores" }}
{{- if eq .component "worker" }}{{ $names = append $names "partners" }}{{ end }}
{{- range $name := $names }}
{{- with get $authorities $name }}
{{- if .secretName }}
- { name: {{ $name }}, secret: { secretName: {{ .secretName }}, defaultMode: 0440, items: [{ key: ca.crt, path: ca.pem }] } }
{{- else if .configMapName }}
- { name: {{ $name }}, configMap: { name: {{ .configMapName }}, items: [{ key: ca.crt, path: ca.pem }] } }
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* OpenShift gives each namespace users and groups of its own, and refuses others. */}}
{{- define "pfqs.openshift" -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}yes{{ end }}
{{- end }}

{{/*
A pod: (dict "root" $ "component" … "command" (list …) "env" (YAML text) "secret" … "resources" … "temporal" bool "port" number "grace" seconds).
A port brings the probes. The same security context as in docker-compose.yml.
*/}}
{{- define "pfqs.pod" -}}
{{- $authorities := include "pfqs.authorities" . | fromYamlArray }}
{{- $pods := .root.Values.pods | default dict }}
{{- $tolerations := $pods.tolerations | default list }}
{{- if .port }}
{{- /* Kubernetes waits 300 s before it replaces the pods of a lost node. */}}
{{- range list "not-ready" "unreachable" }}
{{- $tolerations = append $tolerations (dict "key" (print "node.kubernetes.io/" .) "operator" "Exists" "effect" "NoExecute" "tolerationSeconds" 30) }}
{{- end }}
{{- end }}
metadata:
  labels:
    {{- include "pfqs.labels" . | nindent 4 }}
    {{- with $pods.labels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with $pods.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- range $name := list "nodeSelector" "affinity" "priorityClassName" }}
  {{- with get $pods $name }}
  {{ $name }}: {{ toJson . }}
  {{- end }}
  {{- end }}
  {{- with $tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  automountServiceAccountToken: false
  # With service links, a service named `api` would set API_PORT=tcp://….
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .grace }}
  restartPolicy: {{ .restart | default "Always" }}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- if not (include "pfqs.openshift" .root) }}
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    {{- end }}
    seccompProfile: { type: RuntimeDefault }
  {{- if .port }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector: { matchLabels: {{ include "pfqs.selector" . | fromYaml | toJson }} }
      # Without it the pods of the release before count, and a release ends with all new ones on one node.
      matchLabelKeys: [pod-template-hash]
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "pfqs.image" . | quote }}
      command: {{ .command | toJson }}
      envFrom: [{ secretRef: { name: {{ .secret }} } }]
      env: {{- .env | nindent 8 }}
      resources: {{- toYaml .resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      {{- if .port }}
      ports: {{- toYaml .ports | nindent 8 }}
      startupProbe:
        httpGet: { path: /health, port: {{ .port }} }
        periodSeconds: 2
        failureThreshold: 60
      readinessProbe:
        httpGet: { path: /ready, port: {{ .port }} }
        periodSeconds: 5
        timeoutSeconds: 3
      # Only a process that no longer answers at all is started again; what it depends on is the readiness probe's.
      livenessProbe:
        httpGet: { path: /health, port: {{ .port }} }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- end }}
      volumeMounts:
        - { name: tmp, mountPath: /tmp }
        {{- range $authorities }}
        - { name: {{ .name }}, mountPath: /run/{{ .name }}, readOnly: true }
        {{- end }}
        {{- if and .temporal .root.Values.temporal.tlsSecretName }}
        - { name: temporal, mountPath: /run/temporal, readOnly: true }
        {{- end }}
  volumes:
    - { name: tmp, emptyDir: { medium: Memory, sizeLimit: 64Mi } }
    {{- range $authorities }}
    - {{ toJson . }}
    {{- end }}
    {{- if and .temporal .root.Values.temporal.tlsSecretName }}
    - name: temporal
      secret:
        secretName: {{ .root.Values.temporal.tlsSecretName }}
        defaultMode: 0440
        items: [{ key: ca.crt, path: ca.pem }, { key: tls.crt, path: cert.pem }, { key: tls.key, path: key.pem }]
    {{- end }}
{{- end }}
