"""The functions of Spark that a clause may call: pure ones, which give a value of their arguments and do nothing else.

A name that is not in this list may run code (`java_method`, `reflect`, functions that were registered in the session),
read files (`from_protobuf`), tell about the session (`current_user`, `input_file_name`), or give another value each
time (`rand`, `uuid`). Who trusts the text of a clause passes `unsafe_functions=True`.
"""

from __future__ import annotations

_NUMBERS = """
abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil ceiling conv cos cosh cot csc degrees
div e exp expm1 factorial floor getbit greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod positive
pow power radians rint round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add
try_divide try_mod try_multiply try_subtract unhex width_bucket zeroifnull nullifzero
"""
_TEXTS = """
ascii base64 bit_length btrim char char_length character_length chr collate collation concat concat_ws contains decode
elt encode endswith find_in_set format_number format_string from_base32 ilike initcap instr is_valid_utf8
jaro_winkler_similarity lcase left len length levenshtein like locate lower lpad ltrim luhn_check make_valid_utf8 mask
octet_length overlay parse_url position printf quote regexp regexp_count regexp_extract regexp_extract_all regexp_instr
regexp_like regexp_replace regexp_substr repeat replace reverse right rlike rpad rtrim sentences soundex space split
split_part startswith str_to_map substr substring substring_index to_base32 to_binary to_char to_number to_varchar
translate trim try_parse_url try_to_binary try_to_number try_url_decode try_validate_utf8 ucase unbase64 upper
url_decode url_encode validate_utf8
"""
_HASHES = "crc32 hash hmac md5 sha sha1 sha2 xxhash64"
_TIMES = """
add_months convert_timezone curdate current_date current_time current_timestamp current_timezone date_add date_diff
date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek
dayofyear extract from_unixtime from_utc_timestamp hour last_day localtime localtimestamp make_date make_dt_interval
make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute month monthname
months_between next_day now quarter second time time_bucket time_diff time_from_micros time_from_millis
time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp_micros timestamp_millis
timestamp_nanos timestamp_seconds timestampadd timestampdiff to_date to_time to_timestamp to_timestamp_ltz
to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_make_interval try_make_timestamp try_make_timestamp_ltz
try_make_timestamp_ntz try_to_date try_to_time try_to_timestamp unix_date unix_micros unix_millis unix_nanos
unix_seconds unix_timestamp weekday weekofyear year
"""
_CASTS = "bigint binary boolean date decimal double float int smallint string timestamp tinyint typeof"
_CHOICES = "between coalesce equal_null if ifnull in isnan isnotnull isnull nanvl not nullif nvl nvl2 when"
_COLLECTIONS = """
aggregate array array_append array_compact array_contains array_distinct array_except array_insert array_intersect
array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort array_union
arrays_overlap arrays_zip cardinality element_at exists filter flatten forall get map map_concat map_contains_key
map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with named_struct reduce sequence
size slice sort_array struct transform transform_keys transform_values try_element_at zip_with
vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize vector_sum
"""
_DOCUMENTS = """
from_csv from_json get_json_object is_valid_variant is_variant_null json_array_length json_object_keys parse_json
schema_of_csv schema_of_json schema_of_variant to_csv to_json to_variant_object try_parse_json try_variant_get
variant_get
"""
# Spark refuses them where a clause puts them, and says why.
_AGGREGATES = """
any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or collect_list
collect_set corr count count_if covar_pop covar_samp every first first_value grouping histogram_numeric kurtosis last
last_value listagg max max_by mean median min min_by mode percentile percentile_approx percentile_cont percentile_disc
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev
stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance
"""

PURE_FUNCTIONS = frozenset(
    " ".join((_NUMBERS, _TEXTS, _HASHES, _TIMES, _CASTS, _CHOICES, _COLLECTIONS, _DOCUMENTS, _AGGREGATES)).split()
)
