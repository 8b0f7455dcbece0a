import type { Publisher } from '#engine/sts/publish/publisher.ts'
import type { S3Destination } from '#sdk/sts/token-keys.ts'

/** Tries of one call, the first included. */
const attempts = 2

/**
 * A bucket of Amazon S3 or of anything that speaks its protocol. The SDK is loaded where there is a bucket. Checksums are
 * sent only where the protocol needs them, since many servers refuse the newer ones.
 */
export const s3Publisher = (destination: S3Destination): Publisher => ({
  async put(files, signal) {
    const { S3Client, PutObjectCommand } = await import('@aws-sdk/client-s3')
    const { bucket, prefix, region, endpoint, pathStyle, credentials } = destination
    const client = new S3Client({
      region,
      forcePathStyle: pathStyle,
      maxAttempts: attempts,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(credentials === undefined ? {} : { credentials: { ...credentials } }),
    })
    try {
      for (const { path, text, contentType, cacheControl } of files) {
        const command = new PutObjectCommand({
          Bucket: bucket,
          Key: prefix === '' ? path : `${prefix}/${path}`,
          Body: text,
          ContentType: contentType,
          CacheControl: cacheControl,
        })
        await client.send(command, { abortSignal: signal })
      }
    } finally {
      client.destroy()
    }
  },
})
