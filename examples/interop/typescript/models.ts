// The rows of a FaceTheory ISR table, as the specification models them. models.go and models.py are the same.
//
// A row of another writer may lack what is optional here, and more; attributes that no model names are ignored. Times
// are whole seconds since 1970.

// All models live in one table.
export const tableName = (): string | undefined => process.env['FACETHEORY_CACHE_TABLE_NAME'] || undefined;

// META: what was generated. Fresh iff now < generated_at + revalidate_seconds.
export interface FaceTheoryCacheMetadata {
  pk: string;
  sk: string;
  s3_key: string;
  generated_at: number;
  revalidate_seconds: number;
  etag?: string;
  ttl?: number;
  current_sk?: string; // with history: the VER# row that it points at
  version?: number;
  last_generated_at?: number; // left by an invalidation; only read
}

// LOCK: who is regenerating. Held iff lease_expires_at > now; without lease_expires_at it is not held.
export interface FaceTheoryCacheLease {
  pk: string;
  sk: string;
  lease_token: string;
  lease_expires_at: number;
  ttl?: number;
}

// VER#<id>: one generation that was kept. Ids sort by time of creation.
export interface FaceTheoryCacheVersion {
  pk: string;
  sk: string;
  s3_key: string;
  generated_at: number;
  revalidate_seconds: number;
  etag?: string;
  ttl?: number;
  version?: number;
}

// REQ#<idempotency key>: one regeneration intent. Past its ttl it counts as absent.
export interface FaceTheoryRequest {
  pk: string;
  sk: string;
  request_hash: string;
  status: string; // STARTED, COMPLETED or FAILED
  result_s3_key?: string;
  ttl?: number;
  // What keeps a dead worker from blocking its key. Records of services that know the specification alone lack it.
  owner_token?: string;
  started_at?: number;
  in_progress_expires_at?: number;
  attempt?: number;
  first_seen_at?: number; // of a STARTED record without a time: when somebody met it who could note that
  error?: string;
  retryable?: boolean; // of a FAILED record; absent means yes
}

// DynamoDB's type of each attribute. The compiler holds a model to its interface: every attribute, and of its type.
type Kind<Value> = [Value] extends [string] ? 'S' : [Value] extends [number] ? 'N' : 'BOOL';
export type Model<Row> = { readonly [Name in keyof Row]-?: Kind<NonNullable<Row[Name]>> };

const generation = {
  pk: 'S', sk: 'S', s3_key: 'S', generated_at: 'N', revalidate_seconds: 'N', etag: 'S', ttl: 'N', version: 'N',
} as const;

export const faceTheoryCacheMetadataModel: Model<FaceTheoryCacheMetadata> = {
  ...generation, current_sk: 'S', last_generated_at: 'N',
};
export const faceTheoryCacheLeaseModel: Model<FaceTheoryCacheLease> = {
  pk: 'S', sk: 'S', lease_token: 'S', lease_expires_at: 'N', ttl: 'N',
};
export const faceTheoryCacheVersionModel: Model<FaceTheoryCacheVersion> = generation;
export const faceTheoryRequestModel: Model<FaceTheoryRequest> = {
  pk: 'S', sk: 'S', request_hash: 'S', status: 'S', result_s3_key: 'S', ttl: 'N', owner_token: 'S', started_at: 'N',
  in_progress_expires_at: 'N', attempt: 'N', first_seen_at: 'N', error: 'S', retryable: 'BOOL',
};

const TYPES: Readonly<Record<string, string>> = { S: 'string', N: 'number', BOOL: 'boolean' };

// What the model knows of an item. Nothing says that another writer left a row whole, so any attribute may be missing.
export function fromItem<Row>(model: Model<Row>, item: Readonly<Record<string, unknown>>): Partial<Row> {
  const row: Record<string, unknown> = {};
  for (const [name, kind] of Object.entries<string>(model)) {
    const value = item[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== TYPES[kind]) {
      throw new TypeError(`${item['sk']} of ${item['pk']}: ${name} should be of type ${kind}, not ${typeof value}`);
    }
    row[name] = typeof value === 'number' ? Math.trunc(value) : value;
  }
  return row as Partial<Row>;
}
