import * as z from 'zod'

const kubernetesName = z
  .string()
  .regex(
    /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/,
    'is not a name in Kubernetes: small letters, digits, dots and hyphens',
  )

/** How an API server reaches the injector: by a listener of its own, with a certificate that is given or made. */
export const stsWebhookSchema = z.strictObject({
  /** HOST:PORT */
  listen: z.string().min(1).max(300),

  /** A secret with `tls.crt` and `tls.key`. */
  secretName: z.string().min(1).optional(),
  /** PEM files, relative to the configuration. */
  certFile: z.string().min(1).optional(),
  keyFile: z.string().min(1).optional(),
  /** A PEM file: only callers with a certificate of these authorities are heard. */
  clientAuthorities: z.string().min(1).optional(),

  /** The Kubernetes target whose API server calls; may be left out where there is only one. */
  cluster: z.string().min(1).optional(),
  /** The Service by which it calls. */
  service: z
    .strictObject({ namespace: kubernetesName, name: kubernetesName, port: z.int().min(1).max(65_535).optional() })
    .optional(),
  /** The address by which it calls where that is no Service, without a path. */
  url: z.string().min(1).max(2048).optional(),
  /** The name of the MutatingWebhookConfiguration. */
  configuration: kubernetesName.optional(),
})
export type StsWebhookSpec = z.infer<typeof stsWebhookSchema>
