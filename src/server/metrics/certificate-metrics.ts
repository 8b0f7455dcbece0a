import { Gauge, type Registry } from 'prom-client'

/** Metrics of the certificates of listeners, and of the injector's webhook. */
export function createCertificateMetrics(registry: Registry) {
  const registers = [registry]
  const certificateExpires = new Gauge({
    name: 'gatehouse_tls_certificate_expiry_timestamp_seconds',
    help: 'When the certificate that a listener serves expires, as Unix time, by listener: public or webhook.',
    labelNames: ['listener'],
    registers,
  })
  const certificateCurrent = new Gauge({
    name: 'gatehouse_tls_certificate_current',
    help: '1 while a listener serves the newest certificate, 0 while a newer one cannot be used, by listener.',
    labelNames: ['listener'],
    registers,
  })
  const webhookEnds = new Gauge({
    name: 'gatehouse_sts_webhook_certificate_expiry_timestamp_seconds',
    help: 'When the certificate that the injector serves expires, as Unix time; 0 where it has no listener.',
    registers,
  })
  const webhookRegistered = new Gauge({
    name: 'gatehouse_sts_webhook_current',
    help: 'Whether the webhook configuration of the API server could be written or was right when this process last looked.',
    registers,
  })
  const certificates = {
    serves(listener: string, expires: Date | undefined): void {
      if (expires !== undefined) certificateExpires.set({ listener }, expires.getTime() / 1000)
      else for (const gauge of [certificateExpires, certificateCurrent]) gauge.remove({ listener })
    },
    current(listener: string, isCurrent: boolean): void {
      certificateCurrent.set({ listener }, isCurrent ? 1 : 0)
    },
  }
  return {
    certificates,
    webhook: {
      current: (isCurrent: boolean) => certificates.current('webhook', isCurrent),
      serves(ends: Date | undefined): void {
        certificates.serves('webhook', ends)
        webhookEnds.set(ends === undefined ? 0 : ends.getTime() / 1000)
      },
      registered(ok: boolean): void {
        webhookRegistered.set(ok ? 1 : 0)
      },
    },
  }
}
