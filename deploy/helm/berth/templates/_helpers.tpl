{{- define "berth.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "berth.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "berth.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "berth.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "berth.selector" -}}
app.kubernetes.io/name: {{ include "berth.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "berth.labels" -}}
{{ include "berth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "berth.account" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "berth.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed where serviceAccount.create is false: name the account Berth runs as" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "berth.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Not empty where the books are in PostgreSQL. */}}
{{- define "berth.postgres" -}}
{{- if or .Values.database.url .Values.database.existingSecret }}yes{{ end }}
{{- end }}

{{- define "berth.replicas" -}}
{{- $postgres := include "berth.postgres" . }}
{{- $asked := .Values.replicas }}
{{- if and (not $postgres) (not (kindIs "invalid" $asked)) (gt (int $asked) 1) }}
{{- fail "replicas: several of them share one PostgreSQL. Give database.url or database.existingSecret, or leave replicas at 1" }}
{{- end }}
{{- if kindIs "invalid" $asked }}{{ ternary 2 1 (not (empty $postgres)) }}{{ else }}{{ int $asked }}{{ end }}
{{- end }}

{{- define "berth.database.secret" -}}
{{- default (printf "%s-database" (include "berth.fullname" .)) .Values.database.existingSecret }}
{{- end }}

{{- define "berth.tls.secret" -}}
{{- default (printf "%s-tls" (include "berth.fullname" .)) .Values.tls.existingSecret }}
{{- end }}

{{- define "berth.sealing.secret" -}}
{{- default (printf "%s-sealing" (include "berth.fullname" .)) .Values.sealing.existingSecret }}
{{- end }}

{{- define "berth.audit.secret" -}}
{{- default (printf "%s-audit" (include "berth.fullname" .)) .Values.audit.existingSecret }}
{{- end }}

{{/* The rights of one scope as rules of a role. */}}
{{- define "berth.rules" -}}
{{- $on := .on }}
{{- range .rights }}
{{- if or (not .when) (index $on .when) }}
# For {{ .for }}.
- apiGroups: [{{ default "" .group | quote }}]
  resources: {{ toJson .resources }}
  verbs: {{ toJson .verbs }}
{{- end }}
{{- end }}
{{- end }}
