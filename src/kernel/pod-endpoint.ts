import type { JsonObject } from '#kernel/json.ts'
import type { Template } from '#kernel/template.ts'

/** An endpoint of the token service, as far as the pods of a cluster are concerned. */
export interface PodEndpoint {
  readonly name: string
  /** Below the token service's address. */
  readonly path: string
  /** Of the tokens it issues. */
  readonly audience: string
  /** Of the service-account tokens it takes. */
  readonly incomingAudience: string
  /** A label's suffix after `tremolo.io/`, or a whole label name. */
  readonly label: string
  /** Gets the path of the token file. */
  readonly tokenVariable: string
  /** Gets the value of the pod's annotation; pods need no annotation where it is absent. */
  readonly valueVariable?: string | undefined
  /** The service's certificate is not signed by a public authority. */
  readonly explicitTrust: boolean
  /** Values that annotations and the configuration give. */
  readonly settings: readonly PodSetting[]
  /** Besides the token's variable and that of the annotation's value. */
  readonly variables: readonly PodVariable[]
  readonly file?: PodFile | undefined
}

export interface PodSetting {
  readonly name: string
  /** The annotation named like the label gives it, too. */
  readonly main: boolean
  readonly form: RegExp
  readonly example: string
  /** Without it, and without the variables that hold it, there is no token. */
  readonly needed: boolean
  /** With attributes of the workload. */
  readonly fallback?: Template | undefined
}

export interface PodVariable {
  readonly name: string
  /** With attributes of the workload and settings; the variable is left out where one has no value. */
  readonly text: Template
  /** Those of an endpoint come together or not at all; others give way to a container's own. */
  readonly identity: boolean
}

export interface PodFile {
  readonly name: string
  /** Gets the path of the file. */
  readonly variable: string
  /** Settings without which there is no file. */
  readonly needs: readonly string[]
  content(read: (name: string) => string | undefined): JsonObject
}

/** Labels and annotations of pods that concern the injector begin so. */
export const annotationDomain = 'tremolo.io/'

const labelForm = /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/

/** The label and the annotation of an endpoint; one that has a domain already is taken as it is. */
export const labelName = (label: string): string => (label.includes('/') ? label : `${annotationDomain}${label}`)

/** True for what Kubernetes takes as the name of a label. */
export const isLabelName = (name: string): boolean => labelForm.test(name)
