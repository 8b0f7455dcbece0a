import type { JsonObject } from '#kernel/json.ts'
import type { Template } from '#kernel/template.ts'

/** An endpoint of the token service, as the pods of a cluster use it. */
export interface PodEndpoint {
  readonly name: string
  /** Below the token service's address. */
  readonly path: string
  /** Of the tokens it issues. */
  readonly audience: string
  /** Of the service-account tokens it accepts. */
  readonly incomingAudience: string
  /** A label's suffix after `tremolo.io/`, or a whole label name. */
  readonly label: string
  /** The variable with the path of the token file. */
  readonly tokenVariable: string
  /** The variable with the value of the pod's annotation. If absent, pods need no annotation. */
  readonly valueVariable?: string | undefined
  /** The service's certificate is not signed by a public authority. */
  readonly explicitTrust: boolean
  /** Values from annotations and the configuration. */
  readonly settings: readonly PodSetting[]
  /** Variables besides those of the token and of the annotation. */
  readonly variables: readonly PodVariable[]
  readonly file?: PodFile | undefined
}

export interface PodSetting {
  readonly name: string
  /** The annotation named like the label also sets it. */
  readonly main: boolean
  readonly form: RegExp
  readonly example: string
  /** Without it, the variables that use it and the token are left out. */
  readonly needed: boolean
  /** With attributes of the workload. */
  readonly fallback?: Template | undefined
}

export interface PodVariable {
  readonly name: string
  /** With attributes of the workload and settings; the variable is left out if one has no value. */
  readonly text: Template
  /** The variables of an endpoint are set together or not at all; others yield to a container's own. */
  readonly identity: boolean
}

interface PodFile {
  readonly name: string
  /** The variable with the path of the file. */
  readonly variable: string
  /** Settings without which the file is not written. */
  readonly needs: readonly string[]
  content(read: (name: string) => string | undefined): JsonObject
}

/** The prefix of labels and annotations that the injector reads. */
export const annotationDomain = 'tremolo.io/'

const labelForm = /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/

/** The label and the annotation of an endpoint; one that already has a domain stays unchanged. */
export const labelName = (label: string): string => (label.includes('/') ? label : `${annotationDomain}${label}`)

/** True for a valid Kubernetes label name. */
export const isLabelName = (name: string): boolean => labelForm.test(name)
