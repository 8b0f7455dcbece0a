/** Labels and annotations of pods that concern the injector begin so. */
export const annotationDomain = 'tremolo.io/'

const labelForm = /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/

/** The label and the annotation of an endpoint; one that has a domain already is taken as it is. */
export const labelName = (label: string): string => (label.includes('/') ? label : `${annotationDomain}${label}`)

/** True for what Kubernetes takes as the name of a label. */
export const isLabelName = (name: string): boolean => labelForm.test(name)
